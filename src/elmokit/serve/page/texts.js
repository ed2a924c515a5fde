// All that the page says, in English and in Chinese; the browser's language, unless the reader has chosen.

const CHOSEN = "elmokit language";

const TEXTS = {
  title: ["Words in context", "语境中的词"],
  language: ["Language", "语言"],
  views: ["Views", "视图"],
  api: ["HTTP API", "HTTP 接口"],
  loading: ["Loading …", "正在载入……"],
  unreachable: ["The server does not answer. Is it still running?", "服务器没有响应。它还在运行吗？"],
  unreadable: ["The server's answer ({status}) cannot be read.", "无法读取服务器的回答（{status}）。"],
  key: ["The server's key", "服务器密钥"],
  "key-why": ["This server wants a key: that of its option --key.", "此服务器需要密钥，即启动时 --key 给定的值。"],
  go: ["Go", "确定"],

  // Views
  sentence: ["Sentence", "句子"],
  pair: ["Two sentences", "两个句子"],
  word: ["Corpus", "语料库"],
  model: ["Model", "模型"],
  task: ["Tasks", "任务"],
  "sentence-intro": [
    "How surprising is each word to the model? Choose a word to see what could stand in its place.",
    "每个词让模型有多意外？点一个词，看看它的位置上还能放什么。",
  ],
  "pair-intro": [
    "How alike are the words of two sentences? Layer 0 knows each word by itself, the layers above know its sentence.",
    "两个句子里的词有多像？第 0 层只认得词本身，上面各层还看整个句子。",
  ],
  "word-intro": [
    "Every occurrence of a word in a corpus, in its context and grouped by sense.",
    "一个词在语料库中的所有出现，带上下文，并按词义分组。",
  ],
  examples: ["Try", "试试"],

  // Models and layers
  "the-model": ["Model", "模型"],
  automatic: ["by the text ({name})", "随文本（{name}）"],
  layer: ["Layer", "层"],
  average: ["average", "平均"],
  "layer-number": ["layer {number}", "第 {number} 层"],
  "layers-hint": [
    "0 sees the word alone, the layers above see the sentence.",
    "第 0 层只看词本身，上面各层看整个句子。",
  ],

  // A sentence
  "your-sentence": ["Your sentence", "你的句子"],
  direction: ["Predicted from the words", "预测依据"],
  forward: ["before it", "前文"],
  backward: ["after it", "后文"],
  both: ["around it", "前后文"],
  bits: ["{bits} bits", "{bits} 比特"],
  rank: ["rank {rank}", "第 {rank} 名"],
  "rank-of": ["rank {rank} of {size} words", "在 {size} 个词中排第 {rank}"],
  unknown: ["not in the model's vocabulary", "不在模型的词表中"],
  expected: ["expected", "意料之中"],
  surprising: ["surprising", "出乎意料"],
  "mean-bits": [
    "{bits} bits per word on average, as if choosing among {words} words each time.",
    "平均每词 {bits} 比特，相当于每次在 {words} 个词中选择。",
  ],
  "no-words": ["Type a sentence.", "请输入一个句子。"],
  "no-softmax": [
    "This model has no softmax and cannot predict words; their neighbours can still be seen.",
    "该模型没有 softmax，不能预测词；仍可查看近邻。",
  ],
  "could-stand": ["What could stand here?", "这里还能放什么？"],
  fits: ["What fits", "能放进去的"],
  "fits-how": ["judged by the words around it alone", "只看前后的词"],
  same: ["What means the same", "意思相近的"],
  "same-how": ["judged by the word itself, too", "也看这个词本身"],
  "put-in": ["put “{word}” in its place", "换成“{word}”"],
  "own-rank": ["“{word}” itself: rank {rank}, {share}", "“{word}”自己：第 {rank} 名，{share}"],
  "like-this": ["In the corpus “{corpus}”", "在语料库“{corpus}”中"],
  occurrences: ["Most alike", "最相似的出现"],
  "occurrences-how": ["the same word, where its vector is nearest", "同一个词，向量最接近之处"],
  "static-words": ["Nearest words, static", "最近的词（静态）"],
  "other-words": [
    "The corpus does not have “{word}”: here are other words in like places, by layer “{layer}”.",
    "语料库中没有“{word}”：以下是处境相似的其他词（按“{layer}”层）。",
  ],
  "nearest-words": ["Nearest words", "最近的词"],
  "in-context": ["to the word as it stands in this sentence", "与此句中的这个词相近"],
  "by-static": ["to the word wherever it stands: one vector for all senses", "不管语境：所有词义共用一个向量"],
  "static-lacks": ["The static vectors do not have it.", "静态向量中没有这个词。"],
  "see-lines": ["See “{word}” in the corpus", "查看语料库中的“{word}”"],
  compare: ["the cosine; compare the two sentences word by word", "余弦；逐词比较这两个句子"],

  // Two sentences
  first: ["First sentence", "第一句"],
  second: ["Second sentence", "第二句"],
  matrix: ["Cosines, word by word: {layer}", "逐词余弦：{layer}"],
  "by-layer": ["in each layer", "在各层的余弦"],
  "choose-cell": ["Choose a cell to see that pair in every layer.", "点一个格子，看这一对在各层的余弦。"],

  // A word in a corpus
  corpus: ["Corpus", "语料库"],
  building: [
    "The corpus “{name}” is being indexed{far}. The rest of the page works meanwhile.",
    "正在为语料库“{name}”建立索引{far}。页面其余部分可以照常使用。",
  ],
  waiting: ["The corpus “{name}” is next.", "语料库“{name}”随后建立索引。"],
  "so-far": [": {counted} {unit}", "：{counted} {unit}"],
  "done-of": ["{done} of {total}", "{done} / {total}"],
  "unit-sentences": ["sentences", "句"],
  "corpus-failed": ["The corpus “{name}” cannot be searched: {problem}.", "无法检索语料库“{name}”：{problem}。"],
  "not-yet": [
    "The corpus is not ready yet; the lines appear here as soon as it is.",
    "语料库尚未就绪；就绪后结果会显示在这里。",
  ],
  "your-word": ["Word", "词"],
  look: ["Look it up", "查找"],
  how: ["How senses are found", "如何划分词义"],
  by: ["Compared by", "比较依据"],
  "by-around": ["what the words around it lead to expect", "前后文所预期的"],
  "by-word": ["the word's own vectors", "词自身的向量"],
  "by-substitutes": ["what could stand in its place", "可替换的词"],
  "sense-count": ["Number of senses", "词义数"],
  "by-itself": ["found by itself", "自动"],
  limit: ["Lines at most", "最多行数"],
  "finding-senses": ["Finding the senses …", "正在划分词义……"],
  senses: ["Senses", "词义"],
  groups: ["Groups that do not stand apart", "分组（区分不明显）"],
  "one-sense": ["No senses told apart", "没有分出不同的词义"],
  undivided: [
    "That all lines have one sense is {share} likely. No groups stand clearly apart.",
    "所有行同属一个词义的概率为 {share}。没有区分明显的组。",
  ],
  divide: ["Show two groups", "分成两组看看"],
  "sense-number": ["Sense {number}", "词义 {number}"],
  "group-number": ["Group {number}", "第 {number} 组"],
  documents: ["By document", "各文档频次"],
  "only-document": ["only the lines of {name}", "只看 {name}"],
  "more-documents": ["and {count} more", "另有 {count} 个"],
  sort: ["Sort by", "排序"],
  "sort-text": ["text", "原文"],
  "sort-left": ["left", "左侧"],
  "sort-right": ["right", "右侧"],
  "sort-sense": ["sense", "词义"],
  "sort-source": ["source", "来源"],
  containing: ["Only lines with", "只看含有……的行"],
  clear: ["Show all", "显示全部"],
  "lines-all": ["{lines} lines", "共 {lines} 行"],
  "lines-drawn": ["{lines} lines, drawn at random from {count}", "从 {count} 行中随机抽取 {lines} 行"],
  "lines-seen": ["{seen} of {lines} lines", "{lines} 行中的 {seen} 行"],
  "lines-label": ["Lines. Arrow keys move through them.", "各行。用方向键移动。"],
  "choose-line": ["Choose a line to see its whole sentence and its point.", "点一行，看整个句子和对应的点。"],
  "points-label": [
    "The occurrences as points, near where they are alike. The senses below filter the lines, too.",
    "各次出现的散点图，相似者相近。下方的词义也可用来筛选。",
  ],
  "points-hint": [
    "Each point is a line. Draw a frame around some to see only these.",
    "每个点是一行。拖出一个框，只看框内的行。",
  ],
  "sentence-number": ["sentence {number}", "第 {number} 句"],
  "see-sentence": ["Look at the sentence", "查看此句"],

  // The model
  yes: ["yes", "能"],
  no: ["no", "不能"],
  "fact-layers": ["Layers", "层数"],
  "fact-width": ["Width of a vector", "向量维数"],
  "fact-parameters": ["Weights", "参数量"],
  "fact-vocabulary": ["Words it predicts", "词表大小"],
  "fact-tokenizer": ["Tokenizer", "分词器"],
  "fact-precision": ["Precision", "精度"],
  "fact-predicts": ["Can predict words", "能否预测词"],
  "fact-perplexity": ["Perplexity", "困惑度"],
  "fact-language": ["Language", "语言"],
  "fact-text": ["Text", "训练文本"],
  "fact-tokens-read": ["Tokens read", "读过的词数"],
  "fact-date": ["Date", "日期"],
  "fact-license": ["Licence", "许可"],
  "fact-licence": ["Licence", "许可"],
  "layers-title": ["Its layers", "各层"],
  softmax: [
    "At the top, a softmax ({kind}) predicts one of {size} words in each direction.",
    "最上面的 softmax（{kind}）在两个方向上各预测 {size} 个词之一。",
  ],
  "from-characters": [
    "characters: CNN, {filters} filters, highway × {highways}",
    "字符 CNN：{filters} 个卷积核，highway × {highways}",
  ],
  "from-words": ["word vectors", "词向量"],
  card: ["Its card", "模型卡"],

  // Tasks
  "task-tagging": ["a tag for each word, or spans of words", "给每个词或词串标注"],
  "task-probe": ["what each layer by itself knows of tags", "各层单独能认出的标记"],
  "task-classify": ["a class for a text", "给文本分类"],
  "task-pairs": ["how two texts relate", "判断两段文本的关系"],
  "task-span_qa": ["answers to questions about a text", "根据文本回答问题"],
  "task-srl": ["who does what to whom", "谁对谁做了什么"],
  "task-coref": ["which mentions are the same", "哪些说的是同一对象"],
  "task-wsd": ["which sense a word has", "词在句中的词义"],
  "try-task": ["Try it", "试一试"],
  ask: ["Ask", "运行"],
  "field-text": ["Text", "文本"],
  "field-first": ["First text", "第一段"],
  "field-second": ["Second text", "第二段"],
  "field-question": ["Question", "问题"],
  "field-context": ["Text", "文本"],
  "field-bracketed": ["Sentence, the word in brackets", "句子，词放在方括号中"],
  "field-lemma": ["Lemma, unless it is the word", "词元（若与该词不同）"],
  "field-pos": ["Part of speech", "词性"],
  "no-answer": ["No answer was found.", "没有找到答案。"],
  "no-predicates": ["No predicate was found.", "没有找到谓词。"],
  "no-brackets": ["Put a word in brackets: on the [bank] of the river.", "请把一个词放在方括号中。"],
  mixes: ["What it takes from each layer", "各层的权重"],
  "mixes-hint": [
    "The weights that training has given to the layers of each model; γ scales their sum.",
    "训练后各层的权重；γ 缩放它们的和。",
  ],
  "mix-input": ["at the input", "输入处"],
  "mix-output": ["at the output", "输出处"],

  // Export
  save: ["Save as", "保存为"],
};

let current = chosenLanguage() ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

function chosenLanguage() {
  try {
    return localStorage.getItem(CHOSEN);
  } catch {
    return null; // a page that may keep nothing
  }
}

/** "en" or "zh". */
export function language() {
  return current;
}

/** From now on in that language. */
export function setLanguage(name) {
  current = name;
  try {
    localStorage.setItem(CHOSEN, name);
  } catch {
    // for this visit, then
  }
}

/** A text in the reader's language, with values in its braces. */
export function t(name, values = {}) {
  const text = TEXTS[name][current === "zh" ? 1 : 0];
  return text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** Whether the page has a text of that name. */
export function hasText(name) {
  return name in TEXTS;
}

/** A number as people write it. */
export function number(value, digits = 0) {
  return value.toLocaleString(current, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    signDisplay: "negative",
  });
}

/** A share as a percentage, with a digit more where it is small. */
export function percent(share) {
  const digits = share >= 0.1 ? 0 : share >= 0.001 ? 1 : 3;
  return share.toLocaleString(current, { style: "percent", maximumFractionDigits: digits });
}
