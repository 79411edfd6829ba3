"""The words for "source" with which answers cite: ``[Source 1]``, ``[来源1]``, ``(Quelle 1)``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

_BY_LANGUAGE = {
    "English": (
        "sources? src docs? documents? refs? references? chunks? passages? evidence citations? cite"
        " snippets? contexts? excerpts? footnotes? oaicite"
    ),
    "German": "quellen? dokumente? belege? referenz(?:en)? textstellen? fundstellen? fußnoten?",
    "French": "sources? documents? références? réf extraits?",
    "Spanish": "fuentes? documentos? referencias? fragmentos? citas?",
    "Italian": "font[ei] document[oi] riferiment[oi] rif estratt[oi] citazion[ei]",
    "Portuguese": "fontes? documentos? referências? trechos? citaç(?:ão|ões)",
    "Dutch": "bron(?:nen)? documenten verwijzing(?:en)? fragment(?:en)?",
    "Danish and Norwegian": "kilde[rn]? dokumenter henvisning(?:er)?",
    "Swedish": "käll(?:a|or) dokument referens(?:er)?",
    "Finnish": "läh(?:de|teet) asiakirja viite",
    "Polish": "źród(?:ło|ła) dokument(?:y)? odnośnik przypis",
    "Czech and Slovak": "zdroj(?:e)? dokument odkaz",
    "Hungarian": "forrás(?:ok)? dokumentum hivatkozás",
    "Romanian": "surs[ăae] documentul referinț[ăa]",
    "Turkish": "kaynak(?:lar)? belge doküman kaynakça",
    "Indonesian": "sumber dokumen rujukan",
    "Vietnamese": "nguồn tài\\ liệu",
    "Russian": "источник(?:и|а)? документ(?:ы)? ссылк[аи] фрагмент(?:ы)?",
    "Ukrainian": "джерел[оа] документ(?:и)? посилання",
    "Greek": "πηγ(?:ή|ές) έγγραφο αναφορά",
    "Arabic": "(?:ال)?مصدر (?:ال)?مصادر (?:ال)?وثيقة (?:ال)?مستند (?:ال)?مرجع (?:ال)?مراجع",
    "Persian": "منبع منابع سند",
    "Hebrew": "מקור(?:ות)? מסמך",
    "Hindi": "स्रोत दस्तावेज़ दस्तावेज संदर्भ",
    "Bengali": "উৎস সূত্র",
    "Thai": "แหล่งที่มา แหล่งข้อมูล เอกสาร อ้างอิง",
    "Chinese": (
        "来源 來源 资料 資料 文档 文檔 文件 参考(?:文献|资料)? 參考(?:文獻|資料)? 文献 文獻 引用 "
        "出处 出處 片段 证据 證據 信源"
    ),
    "Japanese": "出典 参照 資料 文書 文献 情報源 引用元 根拠 ソース ドキュメント チャンク",
    "Korean": "출처 문서 자료 참고(?:문헌|자료)? 참조 근거 인용",
}

_WORDS = dict.fromkeys(
    word
    for words in _BY_LANGUAGE.values()
    # A space inside an entry is escaped, because the list is split at spaces.
    for word in re.split(r"(?<!\\) ", words)
)

RESULT_WORD = r"(?:(?:search |web )?results?|papers?|abstracts?)"
"""Words that stand for a source only in square brackets: ``[Result 9]``, but not ``(result 9)``."""


def _alternation(words: Iterable[str]) -> str:
    """Return an expression for any of the words, which are expressions themselves.

    Words are grouped by their first letters, because an expression that ignores case tries each of
    its branches.
    """
    by_first: dict[str, list[str]] = defaultdict(list)
    for word in words:
        has_letter = word[0].isalpha() and word[1:2] != "?"
        by_first[word[0] if has_letter else ""].append(word[1:] if has_letter else word)
    branches = [
        f"{first}(?:{'|'.join(sorted(rests, key=len, reverse=True))})" if first else "|".join(rests)
        for first, rests in by_first.items()
    ]
    return f"(?:{'|'.join(branches)})"


SOURCE_WORD = _alternation(_WORDS)
"""A regular expression for such a word, to be compiled with ``re.IGNORECASE``."""
