"""A file that is made when it is asked for, and then downloaded; where it can't be made, the page
says why.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Literal

import streamlit as st

from masis.errors import MasisError


def prepared_download(
    what: str,
    make: Callable[[], io.BytesIO],
    *,
    file_name: str,
    key: str,
    help_: str,
    mime: str = "application/zip",
    disabled: bool = False,
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    """Draw a button that makes a file and then offers it; an error stands in its place.

    Streamlit's download button would make it as well, but says of an error no more than that there
    was one. The file is held until the page is drawn again, which downloading it does not do.

    Args:
        what: What the file holds, after "Prepare" and "Download".
        make: Makes it; a MasisError is shown with its hint.
        file_name: What the browser calls it.
        key: Of the first button.
        help_: What more there is to know.
        mime: The type of the file.
        disabled: Whether there is nothing to make.
        width: Of both buttons.

    """
    if not st.button(f"Prepare {what}", key=key, help=help_, disabled=disabled, width=width):
        return
    try:
        with st.spinner("Writing the file"):
            file = make()
    except MasisError as error:
        st.error("Nothing was written.", icon=":material/error:")
        st.text(str(error))
        return
    st.download_button(
        f"Download {what}",
        file,
        file_name=file_name,
        mime=mime,
        on_click="ignore",
        icon=":material/download:",
        width=width,
        key=f"{key}-download",
    )
