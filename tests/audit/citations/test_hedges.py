"""Which sentences say only what is not known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit.citations import audit_citations
from masis.audit.citations.hedges import hedges, languages
from masis.schema.case import Evidence
from tests.rules import each

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
Die Quellen enthalten keine Angaben zur Dosis.
Das ist unklar.
Es liegen keine Informationen darüber vor.
Ich kann diese Frage anhand der Dokumente nicht beantworten.
Leider reichen die Informationen nicht aus, um die Frage zu beantworten.
In den Dokumenten wird der Preis nicht erwähnt.
Die Datenlage ist unzureichend.
Es fehlen Angaben zum Preis.
Basierend auf den Quellen lässt sich die Dauer nicht bestimmen.
Les documents ne précisent pas la dose.
La dose n'est pas mentionnée dans les sources.
Les preuves sont insuffisantes.
Il est impossible de répondre à partir de ces extraits.
Je ne peux pas répondre à cette question.
On ignore la cause, aucune information n'est donnée sur ce point.
Malheureusement, le texte ne contient pas cette information.
La cause reste inconnue.
No hay datos suficientes.
El documento no especifica la dosis.
No puedo responder a esta pregunta con la información disponible.
La dosis no se menciona en las fuentes.
La causa es desconocida.
Lamentablemente, no tengo información sobre ese tema.
Le fonti non menzionano il prezzo.
Non ci sono informazioni sufficienti per rispondere.
Il prezzo non è indicato nei documenti.
Non posso rispondere a questa domanda.
Le prove sono insufficienti.
Non è chiaro se il farmaco funzioni.
Purtroppo, il testo non fornisce la data.
Mancano dati sulla durata.
As fontes não mencionam o preço.
Não há informações suficientes para responder.
O preço não é mencionado nos documentos.
Não sei.
As evidências são insuficientes.
Infelizmente, o texto não fornece a data.
Não é possível determinar a causa.
A causa é desconhecida.
De bronnen vermelden de prijs niet.
Er is onvoldoende informatie om de vraag te beantwoorden.
De prijs wordt niet genoemd in de documenten.
Ik weet het niet.
Het is onduidelijk of het middel werkt.
Helaas bevat de tekst geen informatie over de datum.
Op basis van de bronnen kan ik dit niet beantwoorden.
Źródła nie podają ceny.
Brak informacji na ten temat.
Nie wiem.
Nie można odpowiedzieć na to pytanie na podstawie tych dokumentów.
Dowody są niewystarczające.
Cena nie została podana w dokumentach.
Przyczyna jest nieznana.
Niestety, tekst nie zawiera daty.
Källorna nämner inte priset.
Det finns inte tillräckligt med information.
Jag vet inte.
Priset framgår inte av dokumenten.
Det är oklart om läkemedlet hjälper.
Tyvärr innehåller texten ingen uppgift om datum.
Frågan går inte att besvara utifrån källorna.
Underlaget är otillräckligt.
В источниках не указана цена.
Недостаточно данных для ответа.
Я не знаю.
Документы не содержат информации о цене.
Неизвестно, помогает ли препарат.
К сожалению, в тексте нет сведений о дате.
На основании этих источников невозможно ответить на вопрос.
Данных недостаточно.
资料中没有提到价格。
证据不足，无法得出结论。
根据提供的资料，无法确定价格。
没有足够的信息来回答这个问题。
我不知道。
具体剂量不明确。
很抱歉，文档未提供相关信息。
原因尚不清楚。
提供的文件没有说明日期。
資料には価格の記載がありません。
情報が不足しているため、回答できません。
提供された情報では、価格は不明です。
証拠が不十分です。
申し訳ありませんが、この質問にはお答えできません。
原因はわかりません。
文書によると、価格は明記されていません。
제공된 자료에는 가격이 언급되어 있지 않습니다.
정보가 부족하여 답변할 수 없습니다.
증거가 불충분합니다.
원인은 알려져 있지 않습니다.
문서에서 날짜를 확인할 수 없습니다.
효과가 있는지는 불분명합니다.
죄송하지만, 해당 정보가 없습니다.
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
There is insufficient evidence, but aspirin prevents stroke in all adults.
Although the evidence is limited, aspirin prevents stroke in all adults.
The sources do not mention the dose; take 5 mg twice a day.
The evidence is insufficient: aspirin prevents stroke.
The price is unknown – the plant opened in 2004.
Aspirin prevents stroke, although evidence for children is lacking.
Despite insufficient evidence aspirin prevents stroke in all adults.
The context does not say when, yet every adult benefits from it.
I cannot provide an answer, however patients must stop the drug at once.
There is insufficient evidence, but in adults aspirin prevents stroke.
The dose is not stated, aspirin prevents stroke.
It is unclear whether it helps children, so adults take twice the dose.
Die Belege reichen nicht aus, aber Aspirin verhindert Schlaganfälle bei allen Erwachsenen.
Obwohl die Quellen keinen Preis nennen, eröffnete das Werk 2004.
Es gibt keine Nebenwirkungen.
Eine Heilung ist nicht möglich.
Der Arzt gibt dem Patienten keine Tabletten.
Das Medikament senkt die Sterblichkeit nicht.
Die Quellen nennen keinen Preis, Aspirin verhindert Schlaganfälle bei allen Erwachsenen.
Das Gerät enthält kein Blei.
Les preuves sont insuffisantes, mais l'aspirine prévient les AVC chez tous les adultes.
Le médicament n'est pas efficace.
Il n'y a pas de différence entre les groupes.
Bien que les sources ne mentionnent pas le prix, l'usine a ouvert en 2004.
L'appareil ne contient pas de plomb.
La evidencia es insuficiente, pero la aspirina previene el ictus en todos los adultos.
No hay efectos secundarios.
El medicamento no reduce la mortalidad.
Aunque las fuentes no mencionan el precio, la planta abrió en 2004.
El aparato no contiene plomo.
No hay diferencia entre los grupos.
Le prove sono insufficienti, ma l'aspirina previene l'ictus in tutti gli adulti.
Il farmaco non riduce la mortalità.
Non ci sono effetti collaterali.
Sebbene le fonti non menzionino il prezzo, lo stabilimento ha aperto nel 2004.
As evidências são insuficientes, mas a aspirina previne o AVC em todos os adultos.
O medicamento não reduz a mortalidade.
Não há efeitos colaterais.
Embora as fontes não mencionem o preço, a fábrica abriu em 2004.
Er is onvoldoende bewijs, maar aspirine voorkomt beroertes bij alle volwassenen.
Het middel verlaagt de sterfte niet.
Er zijn geen bijwerkingen.
Hoewel de bronnen de prijs niet vermelden, opende de fabriek in 2004.
Brak dowodów w źródłach, ale aspiryna zapobiega udarom u wszystkich dorosłych.
Lek nie zmniejsza śmiertelności.
Nie ma skutków ubocznych.
Chociaż źródła nie podają ceny, fabryka ruszyła w 2004 roku.
Bevisen är otillräckliga, men aspirin förebygger stroke hos alla vuxna.
Läkemedlet minskar inte dödligheten.
Det finns inga biverkningar.
Även om källorna inte nämner priset öppnade fabriken 2004 med många anställda.
Данных недостаточно, но аспирин предотвращает инсульт у всех взрослых.
Препарат не снижает смертность.
Побочных эффектов нет.
Хотя источники не указывают цену, завод открылся в 2004 году.
证据不足，但阿司匹林可以预防所有成年人的中风。
该药物不能降低死亡率。
没有副作用。
虽然资料没有提到价格，工厂于2004年开业。
证据不足，阿司匹林可以预防所有成年人的中风。
証拠は不十分ですが、アスピリンはすべての成人の脳卒中を予防します。
この薬は死亡率を下げません。
副作用はありません。
価格は不明だが、工場は2004年に開業した。
증거가 불충분하지만 아스피린은 모든 성인의 뇌졸중을 예방합니다.
이 약은 사망률을 낮추지 않습니다.
부작용이 없습니다.
가격은 불분명하지만, 공장은 2004년에 문을 열었습니다.
"""


def lines(block: str) -> list[str]:
    return [line for line in block.splitlines() if line]


@pytest.mark.spec("MASIS-CRITIC-P4")
@each(lines(HEDGES))
def test_a_sentence_that_says_what_is_not_known_is_a_hedge(sentence: str) -> None:
    assert hedges(sentence)


@each(lines(ASSERTIONS))
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


def test_every_pattern_of_every_language_compiles_and_is_quick() -> None:
    long = "the evidence does not, " * 60
    for name, language in languages().items():
        language.hedged(long)
        assert not language.hedged("plain words"), name
        assert language.turns.search("plain words") is None, name


@given(st.text(alphabet=st.sampled_from("notbuт,; :.aé不。、없 그-"), max_size=300))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert hedges(text) in (True, False)
