"""What rules mean, in the words of the documentation, so that the dashboards
cannot say something else: the first sentence of each rule's section, which in
turn is made from the rule's source (`make docs`)."""

import re
from pathlib import Path

from look import value_map

PAGE = Path(__file__).resolve().parents[2] / "docs" / "diagnostics.md"


def rules() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8")
    _, rest = text.split("<!-- rules:", 1)
    sections, _ = rest.split("<!-- end of rules -->", 1)
    found = {}
    for section in re.split(r"^## ", sections, flags=re.MULTILINE)[1:]:
        name, body = section.split("\n", 1)
        first = " ".join(body.strip().split("\n\n", 1)[0].split())
        # Whole sentences, as far as a row of a table bears them.
        sentences = re.split(r"(?<=[.])\s+(?=[A-Z])", first)
        meaning = sentences[0]
        for sentence in sentences[1:]:
            if len(meaning) + len(sentence) > 160 or not sentence.endswith("."):
                break
            meaning += " " + sentence
        found[name.strip()] = meaning
    if len(found) < 30:
        raise SystemExit(f"{PAGE} has only {len(found)} rules: has its form changed?")
    return found


def rule_mapping() -> list:
    return [value_map({rule: (meaning, None) for rule, meaning in rules().items()})]
