from tests.ui.conftest import *
def test_it(audited_workbench, open_page):
    import time
    for view in ("machine","people","missed","guarantee","next","own"):
        page = open_page("trust", view=view)
        from tests.ui.conftest import texts
        print(view, texts(page)[:1500])
