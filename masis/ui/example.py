"""The example that fills the form of a new audit: short, and wrong in the ways an audit is for."""

from __future__ import annotations

QUESTION = "What did the longer opening hours of the Ostergaard reading rooms change, and what did they cost?"

EVIDENCE = """\
[1] The city extended the opening hours of its four Ostergaard reading rooms from 40 to 63 hours a week in March 2021.
The two rooms by the harbour kept their old hours and served as a comparison.

[2] Visits to the four rooms rose from 212,000 in 2020 to 318,000 in 2022, an increase of 50%. The harbour rooms saw
hardly any change.

[3] Staff costs went up by 1.9 million kroner a year. Two thirds of this went to evening supplements; no new posts
were created.

[4] In the survey of autumn 2022, 71% of visitors under 25 said that they came mostly after 6 pm. Among visitors
over 60 it was 9%.
"""

ANSWER = (
    "In March 2021 the four Ostergaard reading rooms went from 40 to 63 hours a week [1]. Visits rose by 80% until "
    "2022, while the harbour rooms saw hardly any change [2]. Younger visitors gained most: 71% of those under 25 came "
    "mostly after 6 pm [4]. The extension cost 1.9 million kroner a year [3]. A later review found that the number of "
    "loans doubled [7]. The city created twelve new posts for the evenings."
)
