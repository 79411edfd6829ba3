"""A download whose file is created on demand; if that fails, the page says why."""

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
    """Draw a button that creates a file and then offers it for download; an error is shown in its
    place.

    Streamlit's download button can create a file on demand too, but it doesn't show the reason for
    an error. The file is held until the page is drawn again, which downloading it doesn't do.

    Args:
        what: The contents of the file, used after "Prepare" and "Download".
        make: Creates the file. A MasisError is shown with its hint.
        file_name: The file name for the browser.
        key: Key of the first button.
        help_: Tooltip of the first button.
        mime: The type of the file.
        disabled: Whether there is nothing to create.
        width: Width of both buttons.

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
