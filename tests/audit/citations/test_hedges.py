"""Which sentences say only what is not known."""

from __future__ import annotations

import pytest

from masis.audit.citations import audit_citations
from masis.audit.citations.exemptions import hedges
from masis.schema.case import Evidence

HEDGES = """
There is insufficient evidence to answer this.
The evidence is insufficient to determine the dose.
The margin is not provided in the sources.
Details were not provided.
I cannot provide an answer based on the evidence.
I can't provide a definitive answer.
I could not find any information about this.
I couldn't find an answer in the documents.
The sources do not mention the price.
The sources don't say anything about the price.
The sources cannot provide the length.
The evidence given can't tell when the plant opened.
I don't know.
I do not know the answer to that question.
I'm not sure.
No information about the price is available.
There is no information on this in the provided context.
The provided context does not contain enough information to answer the question.
The documents do not specify when the plant opened.
Unfortunately, the passages do not discuss long-term effects.
It is not possible to determine the cause from the evidence given.
It is unclear whether the drug helps.
The exact figure is unknown.
This cannot be determined from the given evidence.
The price cannot be verified with the available sources.
None of the sources address this question.
Neither of the documents mentions the date.
Nothing in the evidence supports this.
The available evidence does not allow a conclusion.
There isn't enough information to say.
More research is needed.
Based on the provided documents, I am unable to answer this question.
Without further information, a definitive answer cannot be given.
The answer is not stated in the context.
The given sources lack details about the warranty.
No mention is made of the warranty in the manual.
The evidence does not state the dose, the duration, or the age of the patients.
The question cannot be answered from these excerpts.
I have no information about that.
I was unable to find the requested figure.
The report is silent on this point.
To give a precise answer, more information would be needed.
Evidence for this is lacking.
This is outside the scope of the provided sources.
We lack sufficient data to judge.
The context provided does not give specific risks associated with inserting a nasogastric tube during a night shift.
However, without specified context indicating differences in risk, I can't provide a more accurate response.
Die Quellen nennen keinen Preis.
Dazu liegen keine Angaben vor.
Der Preis wird in den Quellen nicht genannt.
Das lässt sich anhand der Quellen nicht beantworten.
Die vorliegenden Informationen reichen nicht aus.
Ich weiß es nicht.
Es gibt nicht genügend Informationen.
Les sources ne mentionnent pas le prix.
Je ne sais pas.
Aucune information n'est disponible sur ce sujet.
Les documents fournis ne permettent pas de répondre.
Il n'y a pas assez d'informations pour répondre.
Las fuentes no mencionan el precio.
No hay información suficiente para responder.
No lo sé.
No se encontró información sobre el precio.
La evidencia es insuficiente.
"""

ASSERTIONS = """
Revenue fell by 12%.
The margin is not provided, but revenue rose 12%.
While the sources do not mention the price, the plant opened in 2004.
The evidence is insufficient for children; adults should take 5 mg a day.
The drug does not reduce mortality.
The company did not report a profit in 2004.
The patients were not provided with insulin.
The device does not contain lead.
Customers cannot find the switch easily.
He could not find work in Boston.
No evidence of cancer was found in the 40 patients.
There was no difference between the groups.
The tests did not show any benefit of the drug.
The law does not provide for compensation.
The battery cannot provide power at night.
The insurance does not cover dental care.
The report was not available until May.
The river is not known to flood.
The bridge has limited capacity for trucks.
Limited data storage makes the phone cheap.
The team lacks a goalkeeper.
The treatment does not support bone growth.
The sources do not mention the price, and it ships in May.
Without insulin the patients die.
The contract does not include maintenance.
The price is not included in the subscription.
She did not know the law.
The firm needs more information technology staff.
Vitamin C does not help against colds.
Die Firma verkauft keine Autos.
Le médicament ne réduit pas la mortalité.
La empresa no vende coches.
The plan does not address climate change.
Unlike the old model, the new one cannot identify faces.
"""


def lines(block: str) -> list[str]:
    return [line for line in block.splitlines() if line]


@pytest.mark.spec("MASIS-CRITIC-P4")
@pytest.mark.parametrize("sentence", lines(HEDGES))
def test_a_sentence_that_says_what_is_not_known_is_a_hedge(sentence: str) -> None:
    assert hedges(sentence)


@pytest.mark.parametrize("sentence", lines(ASSERTIONS))
def test_a_sentence_that_asserts_something_is_none_however_negative(sentence: str) -> None:
    assert not hedges(sentence)


@pytest.mark.spec("MASIS-CRITIC-P4")
@pytest.mark.parametrize(
    "sentence",
    [
        "There is insufficient evidence.",
        "The figure is not provided.",
        "I cannot provide an answer.",
        "INSUFFICIENT EVIDENCE for a conclusion.",
    ],
)
def test_the_spec_s_own_wordings_are_exempt(sentence: str) -> None:
    audit = audit_citations(f"Sales rose [1]. {sentence}", [Evidence(id="1")])
    assert audit.uncited_claims == ()
    assert audit.penalty_factor == 1.0


@pytest.mark.spec("MASIS-CRITIC-P4")
def test_a_hedge_inside_a_sentence_that_asserts_does_not_excuse_it() -> None:
    sentence = "The margin is not provided, but revenue rose 12% in the third quarter."
    audit = audit_citations(f"Sales rose [1]. {sentence}", [Evidence(id="1")])
    assert audit.uncited_claims == (sentence,)
