"""Look up known vulnerabilities of the versions in constraints.txt, and list these components.

``build/components.json`` is the list (CycloneDX), ``build/audit.json`` what pip-audit reports.
Exits with 1 if a vulnerability is known. Where the service cannot be reached nothing is known: that
is said, and is not an error. Arguments are passed on to pip-audit, such as ``--ignore-vuln ID``.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
PIP_AUDIT = [sys.executable, "-m", "pip_audit"]
# Every service knows this package; one that does not is not there, or a bare mirror.
PROBE = "numpy"


def pins(text: str) -> dict[str, str]:
    """Name and version of every ``name==version`` line."""
    lines = (line.strip() for line in text.splitlines())
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def components(versions: dict[str, str]) -> dict:
    """A CycloneDX document that lists packages of PyPI."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": [
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
            }
            for name, version in versions.items()
        ],
    }


def verdict(report: dict) -> tuple[int, list[str]]:
    """The exit code and what to print for a report of pip-audit."""
    lines, audited, vulnerable = [], 0, 0
    for package in report["dependencies"]:
        if "skip_reason" in package:
            lines.append(f"not audited: {package['name']}: {package['skip_reason']}")
            continue
        audited += 1
        vulnerable += bool(package["vulns"])
        for vulnerability in package["vulns"]:
            fixed = ", ".join(vulnerability["fix_versions"]) or "no version yet"
            lines.append(
                f"VULNERABLE: {package['name']} {package['version']}: {vulnerability['id']}, "
                f"fixed in {fixed}"
            )
    if not audited:
        return 0, ["NOT AUDITED: the vulnerability service does not know these packages"]
    return int(vulnerable > 0), [*lines, f"{audited} packages audited, {vulnerable} vulnerable"]


def look_up(path, arguments) -> tuple[dict | None, str]:
    """The report of pip-audit on a file of pins, or None and the reason."""
    options = ["--requirement", path, "--no-deps", "--disable-pip", "--format", "json"]
    command = [*PIP_AUDIT, *options, "--progress-spinner", "off", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        return None, (done.stderr.strip().splitlines() or ["no output"])[-1]


def main(arguments):
    versions = pins(CONSTRAINTS.read_text(encoding="utf-8"))
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    document = json.dumps(components(versions), indent=2)
    (build / "components.json").write_text(document + "\n", encoding="utf-8")
    print(f"build/components.json: {len(versions)} components")

    subprocess.run([*PIP_AUDIT, "--version"], check=True)  # that it runs at all
    # One package first: if the service does not answer, it is not asked for all the others.
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.txt"
        probe.write_text(f"{PROBE}=={versions[PROBE]}\n", encoding="utf-8")
        report, reason = look_up(probe, arguments)
    if report is None or all("skip_reason" in package for package in report["dependencies"]):
        reason = reason or report["dependencies"][0]["skip_reason"]
        print(f"NOT AUDITED: the vulnerability service cannot be reached: {reason}")
        return 0
    report, reason = look_up(CONSTRAINTS, arguments)
    if report is None:
        print(f"the audit failed: {reason}")
        return 1
    (build / "audit.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    code, lines = verdict(report)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
