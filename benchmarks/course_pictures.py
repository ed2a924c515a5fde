"""The pictures of the course, docs/course/pictures/NAME.LANGUAGE.svg: python benchmarks/course_pictures.py [NAMES]

Those of chapters 4, 6, 9, 10 and 11 show what the bundled models say. Text stays text, drawn by the reader's own fonts.
"""

import argparse
import tomllib
from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import elmokit
from elmokit.lexicon import open_corpus, surprisal, survey, type_vectors
from elmokit.model.tokens import as_tensors

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "course" / "pictures"
BLUE, RED, GREY, PALE = "#3b6fb6", "#c8553d", "#8a8f98", "#dfe8f5"
mpl.rcParams |= {
    "svg.fonttype": "none",
    "svg.hashsalt": "elmokit",
    "font.family": ["Noto Sans CJK SC", "DejaVu Sans", "sans-serif"],
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
Draw = Callable[[str], None]
Point = tuple[float, float]


@cache
def model(language: str) -> elmokit.Elmo:
    """The bundled model of a language."""
    return elmokit.load(language)


def canvas(width: float, height: float) -> Axes:
    """A plane without axes, one unit an inch."""
    _, axes = plt.subplots(figsize=(width, height))
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")
    return axes


def box(axes: Axes, x: float, y: float, text: str, *, color: str = PALE, width: float = 0.9) -> None:
    """A box with a text in it, its centre at x, y."""
    axes.add_patch(plt.Rectangle((x - width / 2, y - 0.225), width, 0.45, facecolor=color, edgecolor=GREY))
    axes.text(x, y, text, ha="center", va="center")


def arrow(axes: Axes, start: Point, end: Point, *, color: str = GREY, bend: float = 0) -> None:
    """An arrow, bent if asked for."""
    style = {"arrowstyle": "->", "color": color, "connectionstyle": f"arc3,rad={bend}", "shrinkA": 2, "shrinkB": 2}
    axes.annotate("", end, start, arrowprops=style)


def one_hot(language: str) -> None:
    """The identity matrix."""
    words = {"en": ["river", "bank", "money", "piano"], "zh": ["河", "岸", "银行", "钱"]}[language]
    _, axes = plt.subplots(figsize=(4, 3))
    axes.imshow(np.eye(4), cmap="Blues", vmax=1.6)
    for i, j in product(range(4), repeat=2):
        axes.text(j, i, int(i == j), ha="center", va="center")
    axes.set_yticks(range(4), words)
    axes.set_xticks(range(4), ["1", "2", "3", "4"])


def skip_gram(language: str) -> None:
    """A centre and its window."""
    words = {
        "en": ["people", "sit", "on the", "bank", "of the", "river", "and look"],
        "zh": ["奶奶", "每天", "早上", "去", "河边", "走", "一走"],
    }[language]
    note = {"en": "window of 2", "zh": "窗口为 2"}[language]
    axes = canvas(7.6, 1.9)
    for place, word in enumerate(words):
        color = "#f3d3cb" if place == 3 else PALE if abs(place - 3) <= 2 else "white"
        box(axes, 0.6 + 1.07 * place, 0.5, word, color=color, width=1.0)
        if place != 3 and abs(place - 3) <= 2:
            bend = -0.35 if place > 3 else 0.35
            arrow(axes, (0.6 + 1.07 * 3, 0.75), (0.6 + 1.07 * place, 0.75), color=RED, bend=bend)
    axes.text(0.6 + 1.07 * 3, 1.75, note, ha="center", va="center", color=GREY)


def glove(language: str) -> None:
    """The weight of a pair."""
    x = np.linspace(0, 160, 200)
    _, axes = plt.subplots(figsize=(5, 2.8))
    axes.plot(x, np.minimum(1, (x / 100) ** 0.75), color=BLUE)
    axes.axvline(100, color=GREY, linestyle=":")
    axes.text(102, 0.1, "x_max = 100", color=GREY)
    axes.set(xlabel={"en": "how often the pair occurs, x", "zh": "共现次数 x"}[language], ylabel="f(x)")


def language_model(language: str) -> None:
    """The surprisal of each word."""
    text = {"en": "She sat down and drank a cup of piano.", "zh": "她端起杯子，喝了一口钢琴。"}[language]
    found = surprisal(model(language), text).words
    _, axes = plt.subplots(figsize=(6.4, 2.8))
    bits = [word.forward for word in found]
    axes.bar(range(len(found)), bits, color=[RED if one == max(bits) else BLUE for one in bits])
    axes.set_xticks(range(len(found)), [word.word for word in found])
    axes.set_ylabel({"en": "surprisal, bits", "zh": "惊异度（比特）"}[language])


def bilm(language: str) -> None:
    """Two stacks of layers that never meet."""
    words = {"en": ["They", "drank", "some", "tea"], "zh": ["他", "喝", "了", "茶"]}[language]
    names = {"en": ("forward", "backward"), "zh": ("前向", "后向")}[language]
    axes = canvas(8.6, 3.3)
    for half, (name, color) in enumerate(zip(names, (PALE, "#f3d3cb"), strict=True)):
        left = 0.6 + 4.2 * half
        axes.text(left + 1.5, 3.1, name, ha="center", color=GREY)
        for place, word in enumerate(words):
            x = left + place
            for level, label in enumerate((word, "LSTM 1", "LSTM 2")):
                box(axes, x, 0.35 + 0.95 * level, label, color="white" if level == 0 else color, width=0.8)
                if level:
                    arrow(axes, (x, 0.35 + 0.95 * level - 0.7), (x, 0.35 + 0.95 * level - 0.24))
                if level and place:
                    ends = (x - 0.6, 0.35 + 0.95 * level), (x - 0.4, 0.35 + 0.95 * level)
                    arrow(axes, *(ends if half == 0 else ends[::-1]), color=RED)


def filter_answers(language: str, word: str, width: int) -> list[float]:
    """What a filter of the bundled model says at each place of a word: the one that tells the places apart most."""
    cnn = model(language).bilm.tokens.characters
    assert cnn is not None
    char_ids, _ = as_tensors(model(language).encoder.encode([word]))
    assert char_ids is not None
    [convolution] = [one for one in cnn.convolutions if one.kernel_size == (width,)]
    with torch.no_grad():
        answers = convolution(cnn.embedding(char_ids).transpose(1, 2))[0]  # (filters, places)
    answers = answers[:, 1 : len(word) - width + 2]  # the first character is that of a word's beginning
    best: list[float] = answers[answers.std(dim=1).argmax()].tolist()
    return best


def char_cnn(language: str) -> None:
    """A filter of width 3, or 2, that slides."""
    word, width = {"en": ("walking", 3), "zh": ("汽车站台", 2)}[language]
    texts = {
        "en": ("characters", "a filter of width 3 at each place", "the maximum"),
        "zh": ("字符", "宽度为 2 的卷积核，每个位置一个响应", "最大值"),
    }[language]
    answers = filter_answers(language, word, width)
    axes = canvas(7.6, 2.9)
    for place, letter in enumerate(word):
        box(axes, 0.6 + 0.7 * place, 0.35, letter, width=0.6)
    for place, answer in enumerate(answers):
        x = 0.6 + 0.7 * (place + (width - 1) / 2)
        best = answer == max(answers)
        box(axes, x, 1.35, f"{answer:.1f}", color="#f3d3cb" if best else "white", width=0.6)
        for offset in (0, width - 1):
            axes.plot([0.6 + 0.7 * (place + offset), x], [0.6, 1.1], color=RED if best else PALE)
        if best:
            arrow(axes, (x, 1.6), (x, 2.2), color=RED)
            box(axes, x, 2.45, f"{answer:.1f}", color="#f3d3cb", width=0.6)
    for text, y in zip(texts, (0.35, 1.35, 2.45), strict=True):
        axes.text(0.6 + 0.7 * len(word), y, text, va="center", color=GREY)


def elmo(language: str) -> None:
    """2L + 1 boxes in L + 1 rows."""
    rows = {"en": "layer", "zh": "第 {} 层"}[language]
    axes = canvas(6.4, 2.7)
    for level in range(3):
        y = 0.45 + 0.9 * level
        name = rows.format(level) if "{" in rows else f"{rows} {level}"
        axes.text(0.1, y, name, va="center", color=GREY)
        if level == 0:
            box(axes, 3.1, y, "x_k", color="white", width=3.0)
        else:
            box(axes, 2.3, y, f"→ h_k,{level}", width=1.4)
            box(axes, 3.9, y, f"← h_k,{level}", color="#f3d3cb", width=1.4)
            arrow(axes, (2.3, y - 0.65), (2.3, y - 0.24))
            arrow(axes, (3.9, y - 0.65), (3.9, y - 0.24))
        axes.text(4.9, y, "h_k,0 = [x; x]" if level == 0 else f"h_k,{level} = [→h; ←h]", va="center")


def mix(language: str) -> None:
    """The worked example."""
    first, second = np.array([0.2, 0.4, 0.1, 0.3]), np.array([0.6, 0.1, 0.5, 0.2])
    _, axes = plt.subplots(1, 3, figsize=(7.6, 2.4), sharey=True)
    for part, values, title in zip(axes[:2], (first, second), ("h1", "h2"), strict=True):
        part.bar(range(4), values, color=BLUE if title == "h1" else RED)
        part.set_title(title)
    axes[2].bar(range(4), 0.3 * first, color=BLUE)
    axes[2].bar(range(4), 0.7 * second, bottom=0.3 * first, color=RED)
    axes[2].set_title("0.3 h1 + 0.7 h2")
    for part in axes:
        part.set_xticks(range(4), ["1", "2", "3", "4"])
    for place, value in enumerate(0.3 * first + 0.7 * second):
        axes[2].text(place, value + 0.01, f"{value:.2f}", ha="center")
    axes[0].set_ylabel({"en": "value", "zh": "数值"}[language])


def finetuning(language: str) -> None:
    """How many weights learn."""
    counts = []
    for trainable in ("mix", "top", "all"):
        layer = elmokit.ElmoEmbedding(model(language), trainable=trainable)  # type: ignore[arg-type]
        counts.append(sum(weight.numel() for weight in layer.parameters() if weight.requires_grad))
    _, axes = plt.subplots(figsize=(5.6, 2.2))
    axes.barh(["mix", "top", "all"], counts, color=[BLUE, BLUE, RED])
    axes.set_xscale("log")
    axes.set_xlim(1, 3e8)
    for place, count in enumerate(counts):
        axes.text(count * 1.3, place, f"{count:,}", va="center")
    axes.set_xlabel({"en": "weights that learn", "zh": "学习的参数个数"}[language])


def layers(language: str) -> None:
    """Cosines of one sense and of two, by layer, over the demo's words."""
    demo = tomllib.loads((ROOT / "samples" / "demo.toml").read_text(encoding="utf-8"))[language]["words"]
    numbers = range(model(language).layer_count)
    same, apart = np.zeros(len(numbers)), np.zeros(len(numbers))
    for layer in numbers:
        for senses in demo.values():
            vectors = [[model(language).vector(text, layers=layer) for text in sense] for sense in senses]
            one, other = ([vector / np.linalg.norm(vector) for vector in sense] for sense in vectors)
            same[layer] += np.mean([a @ b for sense in (one, other) for a, b in combinations(sense, 2)]) / len(demo)
            apart[layer] += np.mean([a @ b for a, b in product(one, other)]) / len(demo)
    names = {"en": ("one sense", "two senses", "layer", "cosine"), "zh": ("同一义项", "不同义项", "层", "余弦")}[
        language
    ]
    _, axes = plt.subplots(figsize=(5, 2.8))
    axes.plot(numbers, same, "o-", color=BLUE, label=names[0])
    axes.plot(numbers, apart, "s--", color=RED, label=names[1])
    axes.set(xlabel=names[2], ylabel=names[3], xticks=list(numbers))
    axes.legend(frameon=False)


def novel(language: str) -> None:
    """The most frequent words of the sample on the plane where their vectors differ most."""
    people = {
        "en": {"Anna", "Tom", "Lily", "Ben", "Sam", "Grandmother", "Father", "Mother"},
        "zh": {"小雨", "阿强", "奶奶", "爸爸", "妈妈", "哥哥", "老张", "王老师", "爷爷", "舅舅"},
    }[language]
    corpus = open_corpus([ROOT / "samples" / f"{language}.txt"], model(language).tokenizer)
    counts = survey(corpus).counts
    known = type_vectors(corpus, model(language), min_count=3)
    chosen = [row for row, word in enumerate(known.words) if word in people or (counts[word] > 17 and word.isalpha())]
    vectors = known.vectors[chosen]
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors - vectors.mean(axis=0)
    plane = vectors @ np.linalg.svd(vectors, full_matrices=False)[2][:2].T
    _, axes = plt.subplots(figsize=(8, 5.4))
    axes.axis("off")
    for (x, y), row in zip(plane, chosen, strict=True):
        word = known.words[row]
        axes.text(x, y, word, ha="center", va="center", color=RED if word in people else GREY)
    axes.set(xlim=(plane[:, 0].min() - 0.05, plane[:, 0].max() + 0.05), ylim=(plane[:, 1].min(), plane[:, 1].max()))


DRAWN: dict[str, Draw] = {
    "one-hot": one_hot,
    "skip-gram": skip_gram,
    "glove": glove,
    "language-model": language_model,
    "bilm": bilm,
    "char-cnn": char_cnn,
    "elmo": elmo,
    "mix": mix,
    "finetuning": finetuning,
    "layers": layers,
    "novel": novel,
}


def main() -> None:
    """Draw all of them, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(DRAWN))
    PICTURES.mkdir(exist_ok=True)
    for name in parser.parse_args().names or DRAWN:
        for language in ("en", "zh"):
            DRAWN[name](language)
            target = PICTURES / f"{name}.{language}.svg"
            settings = {"bbox_inches": "tight", "facecolor": "white", "metadata": {"Date": None}}
            plt.savefig(target, **settings)  # type: ignore[arg-type]
            plt.close("all")
            print(target.relative_to(ROOT))


if __name__ == "__main__":
    main()
