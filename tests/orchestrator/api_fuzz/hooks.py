"""What the API's document can not say of a body: a workspace comes as a real zip."""

import io
import zipfile

import schemathesis
from hypothesis import strategies as st

NAMES = ["build.gradle", "app/build.gradle", "app/src/main/java/Main.java", "gradle.properties"]


@st.composite
def zips(draw: st.DrawFn) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
            archive.writestr(name, draw(st.binary(max_size=64)))
    return data.getvalue()


schemathesis.openapi.media_type("application/zip", zips())
