"""The function words of English and Chinese: a list is enough for both, and needs no tagger."""

ENGLISH = frozenset(
    """
    a an the this that these those some any no every each either neither both all many much more most few fewer fewest
    little less least several enough such same other others another own only certain half one ones whole i me my mine
    myself you your yours yourself yourselves he him his himself she her hers herself it its itself we us our ours
    ourselves they them their theirs themselves thou thee thy thine thyself ye who whom whose which what whoever
    whomever whatever whichever someone somebody something anyone anybody anything everyone everybody everything
    nobody nothing none oneself of in on at by for with from to into onto upon unto about above across after against
    along alongside amid amidst among amongst around as before behind below beneath beside besides between beyond
    concerning despite down during except inside like near off opposite out outside over past per regarding round
    since through throughout till toward towards under underneath until up via within without and but or nor so yet if
    unless although though because while whilst whereas whether than lest albeit be am is are was were been being have
    has had having do does did done doing will would shall should can could may might must ought need dare wilt shalt
    art wert hast hath hadst dost doth didst canst wouldst shouldst couldst not never n't nt ain aren couldn didn
    doesn don hadn hasn haven isn mightn mustn needn shan shouldn wasn weren won wouldn cannot ca wo sha s t d ll m re
    ve 's 'd 'll 'm 're 've 't 'tis 'twas tis twas let here there where when why how hence thence whence hither
    thither whither wherever whenever however elsewhere somewhere anywhere everywhere nowhere now then once twice
    again ever always often sometimes seldom already still just too very quite rather almost even also else perhaps
    maybe indeed therefore thus moreover nevertheless otherwise instead away back together apart yes oh ah o well
    therein thereof thereby therefor thereupon wherein whereof whereby whereupon herein hereby
    """.split()
)

CHINESE = frozenset(
    """
    的 了 着 过 地 得 之 所 者 也 矣 乎 焉 哉 兮 耳 尔 夫 盖 么 吗 呢 吧 啊 呀 哇 啦 嘛 罢 罢了 呵 哦 噢 哪 哩 咧 咯
    喽 而已 来着 似的 一样 一般 般 等 等等 第 们 被 把 将 让 叫 给 使 令 我 你 他 她 它 您 咱 俺 吾 余 予 汝 我们 你们
    他们 她们 它们 咱们 俺们 自己 自家 自个儿 人家 别人 他人 大家 彼此 其 其他 其它 其余 这 那 此 彼 斯 兹 这个 那个
    这些 那些 这里 那里 这儿 那儿 这样 那样 这么 那么 这般 那般 这种 那种 这边 那边 此时 这时 那时 如此 谁 什么 甚么
    甚 什 啥 何 孰 哪个 哪些 哪里 哪儿 哪样 怎 怎么 怎样 怎么样 怎的 怎生 如何 为何 为什么 多少 几 若干 某 某些 每 各
    各个 任何 一切 所有 全 全部 凡 凡是 诸 另 另外 别 别的 有的 有些 有人 一些 一点 一点儿 本 该 一 二 两 三 四 五 六
    七 八 九 十 百 千 万 亿 零 一个 两个 几个 个 只 件 条 位 些 种 次 回 遍 趟 番 阵 声 句 名 张 根 支 枝 块 片 座 不
    没 没有 未 无 非 莫 勿 毋 弗 不是 不要 不能 不会 不敢 不曾 未曾 不用 不必 不可 并不 并非 不得 不肯 休 是 有 为 乃
    即 系 在 于 从 自 自从 由 由于 到 至 往 向 朝 对 对于 关于 至于 跟 和 与 同 及 以及 并 并且 而 而且 且 或 或者
    还是 以 用 按 按照 依 依照 据 根据 凭 凭着 因 因为 因此 因而 所以 故 故此 于是 为了 为着 比 除 除了 除非 连 沿
    沿着 随 随着 当 趁 经 经过 通过 虽 虽然 虽是 尽管 但 但是 但凡 然而 然 可是 可 不过 只是 却 却是 倒 倒是 反 反而
    则 若 若是 如 如果 倘 倘若 倘或 假如 假使 要是 只要 只有 既 既然 即使 即便 就是 就算 纵 纵然 哪怕 无论 不论 不管
    不但 不仅 不只 甚至 何况 况且 况 以致 以至 以免 免得 与其 宁可 否则 不然 要不 譬如 例如 比如 正如 好像 犹如 如同
    仿佛 能 能够 会 可以 可能 要 想要 应 应该 应当 须 必须 必 需 需要 敢 肯 愿 愿意 须要 就 才 都 还 又 再 更 更加 最
    很 太 极 十分 非常 颇 颇为 较 比较 稍 稍微 略 略微 越 愈 越发 愈加 已 已经 曾 曾经 正 正在 刚 刚刚 刚才 方 方才
    将要 便 便是 遂 乃是 即是 皆 俱 均 共 一共 总 总是 总共 只得 只好 仅 仅仅 光 单 单单 惟 唯 独 尤 尤其 特别 竟 竟然
    居然 果然 果 究竟 到底 毕竟 终 终于 忽 忽然 忽地 忽见 渐 渐渐 逐渐 常 常常 时常 经常 往往 仍 仍然 仍旧 依然 依旧
    永远 始终 一直 向来 从来 一向 立刻 立即 马上 随即 随后 然后 后来 接着 先 先前 首先 再三 一再 屡 屡次 又是 也是
    还有 也有 都是 也许 或许 大约 大概 恐怕 怕 似 似乎 几乎 差不多 简直 索性 反正 其实 实在 真 真是 的确 确实 当然
    自然 原来 本来 原是 一同 一起 一齐 一面 一边 互相 相 亲自 特 特地 故意 何必 何尝 何曾 岂 难道 莫非 不知 且说 话说
    却说 只见 原 亦 犹 尚 尚且 复 辄 咸 悉 诚 固 宜 若夫 然则 是以 是故 以为 所谓 之后 之前 之中 之间 之上 之下 以后
    以前 以来 以上 以下 以外 以内 上 下 里 外 中 内 间 前 后 左 右 旁 边 上面 下面 里面 外面 前面 后面 里头 外头 起来
    下来 下去 上来 上去 出来 出去 进来 进去 过来 过去 回来 回去 来 去 起 出 进 呜呼 唉 哎 嗯 喂 哼 嘻 咦 哈 哈哈 嗳
    罢咧
    """.split()
)


def is_function_word(word: str) -> bool:
    """Whether a word, however it is cased, is a pronoun, preposition, particle or the like, in English or Chinese.

    Numerals, measure words and words of place that jieba splits off are among the Chinese ones.
    """
    return word.lower().replace("’", "'") in ENGLISH or word in CHINESE
