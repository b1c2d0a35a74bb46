"""What replies look like: an example of each, for readers of the OpenAPI document."""

from typing import Any

_BUILD_ID = "8f14e45fceea167a5a36-1"
_RUN_ID = "20261130-101500-1f3a"
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_WORKSPACE = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
_ARTIFACT = {
    "number": 0,
    "path": "app/build/outputs/apk/debug/app-debug.apk",
    "kind": "apk",
    "variant": "debug",
    "size_bytes": 1_482_113,
    "sha256": _SHA256,
}
_BUILD: dict[str, Any] = {
    "id": _BUILD_ID,
    "owner": "local",
    "project": "hello",
    "workspace": _WORKSPACE,
    "tasks": ["assembleDebug"],
    "args": [],
    "state": "finished",
    "stage": "end",
    "reason": None,
    "outcome": "succeeded",
    "exit_code": 0,
    "cause": None,
    "phone": None,
    "pool": "default",
    "priority": "normal",
    "attempt": 1,
    "is_cancel_asked": False,
    "created": "2026-11-30T10:15:00Z",
    "started": "2026-11-30T10:15:00.040Z",
    "finished": "2026-11-30T10:15:48.120Z",
    "runs": [
        {
            "id": f"{_BUILD_ID}-1",
            "attempt": 1,
            "phone": "192.168.1.20:5555",
            "host": "local",
            "route": "run_as",
            "state": "done",
            "detail": None,
            "created": "2026-11-30T10:15:00.040Z",
            "finished": "2026-11-30T10:15:48.120Z",
            "log_size_bytes": 5120,
            "log_sha256": _SHA256,
            "stage_s": {"upload": 0.61, "unpack": 0.4, "gradle": 46.2, "collect": 0.2, "fetch": 0.3},
        }
    ],
    "artifacts": [_ARTIFACT],
}
_WAITING = {
    **_BUILD,
    "state": "queued",
    "stage": "queue",
    "reason": "all phones that fit are busy",
    "outcome": None,
    "exit_code": None,
    "started": None,
    "finished": None,
    "runs": [],
    "artifacts": [],
}
_PHONE = {
    "address": "192.168.1.20:5555",
    "serial": "R5CT20ABCDE",
    "host": "local",
    "pool": "default",
    "route": None,
    "state": "online",
    "reason": None,
    "build": _BUILD_ID,
    "is_busy": True,
    "queue": 2,
    "resting": None,
    "contract": {"jdk": "21.0.4", "gradle": "8.10", "platforms": ["android-36"], "abi": "arm64-v8a"},
    "health": {"battery_percent": 87, "is_charging": True, "heat_celsius": 31.5},
    "seen": "2026-11-30T10:14:50Z",
}
_PROBLEM = {"code": "javac", "file": "app/src/main/java/Main.java", "line": 3, "text": "cannot find symbol"}

_RUN: dict[str, Any] = {
    "id": _RUN_ID,
    "owner": "local",
    "state": "asking",
    "assignment": "Fix the crash in the login screen.",
    "workspace": "/home/me/projects/hello",
    "model": "a-model",
    "created": "2026-11-30T10:15:00Z",
    "finished": None,
    "question": {
        "id": "0-1",
        "tool": "write_file",
        "arguments": {"path": "app/src/main/java/Login.java"},
        "summary": "app/src/main/java/Login.java",
    },
    "doing": "turn 3: the model is asked",
    "reason": None,
    "detail": None,
    "text": None,
    "spent": {"turns": 3, "builds": 1},
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "Alive": {"status": "ok"},
    "Ready": {"status": "ready", "host": "local"},
    "Status": {
        "host": "local",
        "version": "0.1.0",
        "hosts": [{"id": "local", "url": None, "heartbeat": "2026-11-30T10:15:00Z", "is_lost": False}],
        "builds": {"queued": 2, "running": 4, "succeeded": 120},
        "phones": {"online": 2, "busy": 4},
    },
    "SweepReply": {
        "builds": [_BUILD_ID],
        "artifacts": [_SHA256],
        "workspaces": [_WORKSPACE],
        "blob_bytes": 48_213,
        "agent_runs": [{"id": _RUN_ID, "size_bytes": 81_920}],
        "is_dry_run": True,
    },
    "BuildReply": _BUILD,
    "BuildAccepted": {**_WAITING, "is_joined": False},
    "BuildPage": {"builds": [_BUILD], "next": f"1796033700.25_{_BUILD_ID}"},
    "ArtifactList": {"artifacts": [_ARTIFACT]},
    "ProblemList": {"problems": [_PROBLEM]},
    "DigestReply": {
        "build": _BUILD_ID,
        "text": "FAILED: 1 error in your code\napp/src/main/java/Main.java:3: cannot find symbol",
        "digest": {
            "outcome": "failed",
            "failed_tasks": [":app:compileDebugJavaWithJavac"],
            "causes": [_PROBLEM],
        },
    },
    "EventsReply": {
        "build": _BUILD_ID,
        "gradle": "8.10",
        "outcome": "success",
        "tasks": [{"path": ":app:assembleDebug", "outcome": "SUCCESS", "duration_s": 3.25}],
        "failures": [],
    },
    "LineReply": {"first": 0, "lines": ["> Task :app:preBuild UP-TO-DATE"], "total": 61},
    "SearchReply": {"lines": [12, 40], "hits": 2, "total": 61},
    "MissingReply": {"missing": [_SHA256]},
    "WorkspaceReply": {
        "workspace": _WORKSPACE,
        "name": "hello",
        "files": 14,
        "size_bytes": 20_480,
        "notes": [],
    },
    "PhoneReply": _PHONE,
    "PhoneList": {"phones": [_PHONE]},
    "AgentReply": _RUN,
    "AgentPage": {"runs": [_RUN], "next": _RUN_ID},
    "TranscriptReply": {"entries": [{"kind": "text", "text": "I look at the login screen."}]},
    "Problem": {
        "type": "urn:pocketbuild:problem:not_found",
        "title": "Not Found",
        "status": 404,
        "detail": "there is no build 5f0c",
        "code": "not_found",
        "hint": "List what there is; ids are case-sensitive.",
        "request_id": "b7ad6b7169203331",
    },
}
"""By the name of the reply's model."""
