"""Put a folder into a container of Azure's blob storage, which is made first.

    azure_put.py ENDPOINT ACCOUNT KEY CONTAINER PREFIX FOLDER

ENDPOINT ends with the account's name, as Azurite's does. Requests are signed
with the account's key ("Shared Key" of Azure's documentation).
"""

import base64
import email.utils
import hashlib
import hmac
import pathlib
import sys
import urllib.parse
import urllib.request

endpoint, account, key, container, prefix, folder = sys.argv[1:]


def put(path, body, headers=(), query=()):
    length = str(len(body)) if body else ""
    headers = dict(headers) | {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    resource = f"/{account}" + urllib.parse.urlsplit(f"{endpoint}/{path}").path
    resource += "".join(f"\n{name}:{value}" for name, value in sorted(query))
    # Method, then the standard headers, of which only length and type are sent.
    text = f"PUT\n\n\n{length}\n\napplication/octet-stream\n\n\n\n\n\n\n{signed}{resource}"
    signature = base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()
    url = f"{endpoint}/{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
    request = urllib.request.Request(url, data=body, method="PUT", headers=headers | {
        "Authorization": f"SharedKey {account}:{signature}", "Content-Type": "application/octet-stream",
        "Content-Length": str(len(body)),
    })
    urllib.request.urlopen(request, timeout=30).close()


put(container, b"", query=[("restype", "container")])
for file in sorted(pathlib.Path(folder).rglob("*")):
    if file.is_file():
        name = urllib.parse.quote(f"{container}/{prefix}/{file.relative_to(folder)}")
        put(name, file.read_bytes(), {"x-ms-blob-type": "BlockBlob"})
