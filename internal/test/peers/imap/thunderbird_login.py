"""Stores a password in a profile of Thunderbird, with Thunderbird's own library.

Arguments: folder of the profile, origin such as imap://localhost, user, password.
"""

import base64
import ctypes
import json
import sys
import time
import uuid

profile, origin, user, password = sys.argv[1:]
nss = ctypes.CDLL("/usr/lib/thunderbird/libnss3.so")


class Item(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint), ("data", ctypes.c_void_p), ("length", ctypes.c_uint)]


def succeed(result, what):
    if result != 0:
        sys.exit(f"{what} failed")


succeed(nss.NSS_InitReadWrite(f"sql:{profile}".encode()), "NSS_InitReadWrite")
nss.PK11_GetInternalKeySlot.restype = ctypes.c_void_p
slot = ctypes.c_void_p(nss.PK11_GetInternalKeySlot())
if nss.PK11_NeedUserInit(slot):
    succeed(nss.PK11_InitPin(slot, None, b""), "PK11_InitPin")
nss.PK11_FreeSlot(slot)


def encrypted(text):
    plain = ctypes.create_string_buffer(text.encode())
    given = Item(0, ctypes.cast(plain, ctypes.c_void_p), len(text.encode()))
    key, result = Item(0, None, 0), Item(0, None, 0)
    succeed(nss.PK11SDR_Encrypt(ctypes.byref(key), ctypes.byref(given), ctypes.byref(result), None), "PK11SDR_Encrypt")
    return base64.b64encode(ctypes.string_at(result.data, result.length)).decode()


now = int(time.time() * 1000)
login = {
    "id": 1, "hostname": origin, "httpRealm": origin, "formSubmitURL": None, "usernameField": "", "passwordField": "",
    "encryptedUsername": encrypted(user), "encryptedPassword": encrypted(password), "guid": "{%s}" % uuid.uuid4(),
    "encType": 1, "timeCreated": now, "timeLastUsed": now, "timePasswordChanged": now, "timesUsed": 1,
}
with open(f"{profile}/logins.json", "w") as file:
    json.dump({"nextId": 2, "logins": [login], "version": 3}, file)
succeed(nss.NSS_Shutdown(), "NSS_Shutdown")
