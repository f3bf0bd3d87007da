"""Which characters belong to which kind of writing, as ranges for patterns. Python's ``re`` has no names for them."""

from __future__ import annotations

from typing import Final

# Scripts without spaces between words; Hangul, which has some, is searched in the same way.
UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0eff"  # Lao
    "\u1000-\u1049\u1050-\u109d\ua9e0-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3031-\u3035\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Kana
    "\U0001aff0-\U0001b16f"  # Kana, historic
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
)

# Marks that are part of a word, which Python's \w is not told of. Letters and unassigned places between them are in.
MARKS: Final = (
    "\u0483-\u0487\ua66f\ua674-\ua67d\ua69e-\ua6f1"  # Cyrillic, Bamum
    "\u0610-\u061a\u0653-\u065f\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0897-\u08e1"  # Arabic
    "\u0711-\u07f3\u07fd\u0816-\u082d\u0859-\u085b"  # Syriac, Thaana, N'Ko, Samaritan, Mandaic
    "\u08e3-\u0963\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63"  # Devanagari to Oriya
    "\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d\u0d57-\u0d63\u0d81-\u0df3"  # Tamil to Sinhala
    "\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84\u0f86-\u0fbc\u0fc6"  # Tibetan
    "\u135d-\u135f\u1712-\u1734\u1752-\u1773\u1885-\u193b\u1a17-\u1a1b\u1a55-\u1a7f"  # Ethiopic to Tai Tham
    "\u1b00-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2\u1cd4-\u1cff"  # Balinese to Vedic
    "\u2cef-\u2cf1\u2d7f-\u2dff\ua802-\ua827\ua82c\ua880-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d"  # Coptic to Kayah Li
    "\ua947-\ua953\ua980-\ua9c0\uaa29-\uaa4d\uaab0-\uaac1\uaaeb-\uaaef\uaaf5\uaaf6\uabe3-\uabea\uabec\uabed\ufb1e"
    "\U000101fd-\U0001037a\U00010a01-\U00010a3f\U00010ae5\U00010ae6\U00010d24-\U00010eac\U00010efa-\U00010eff"
    "\U00010f46-\U00010f50\U00010f82-\U00010f85\U00011000-\U00011046\U00011070-\U000110ba\U000110c2"
    "\U00011100-\U00011134\U00011145-\U00011173\U00011180-\U000111c0\U000111c9-\U000111cc\U000111ce\U000111cf"
    "\U0001122c-\U00011237\U0001123e\U00011241\U000112df-\U00011446\U0001145e-\U000114c3\U000115af-\U000115c0"
    "\U000115dc-\U00011640\U000116ab-\U000116b7\U0001171d-\U0001172b\U0001182c-\U0001183a\U00011930-\U00011943"
    "\U000119d1-\U000119e0\U000119e4-\U00011a3e\U00011a47-\U00011a99\U00011c2f-\U00011c3f\U00011c92-\U00011ef6"
    "\U00011f00-\U00011f03\U00011f34-\U00011f42\U00011f5a\U00013440\U00013447-\U00013455\U0001611e-\U0001612f"
    "\U00016af0-\U00016af4\U00016b30-\U00016b36\U00016f4f-\U00016f92\U00016fe4-\U00016ff1\U0001e000-\U0001e136"
    "\U0001e2ae-\U0001e2ef\U0001e4ec-\U0001e4ef\U0001e5ee\U0001e5ef\U0001e8d0-\U0001e94a"
)

SYMBOL: Final = "\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001faff"
