#!/usr/bin/env python3
"""A picture of the server's page, as it is in the documentation; needs Chromium and playwright.

python benchmarks/explorer.py                   docs/explorer.png: a sentence, and a word in it
python benchmarks/explorer.py --language zh     docs/explorer.zh.png: the same in Chinese
"""

import argparse
import shutil
import sys
from pathlib import Path
from threading import Thread
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from elmokit.serve import open_service
from elmokit.serve.server import Server, address_of, configured, listen

ROOT = Path(__file__).parents[1]
NAMES = {"en": "explorer.png", "zh": "explorer.zh.png"}
STATES = {
    "en": "view=sentence&text=The%20bank%20raised%20its%20interest%20rates%20again%20this%20year.&at=4",
    "zh": f"view=sentence&text={quote('他花了三百块钱买了一辆旧车。')}&at=1",
}


def main() -> None:
    """Serve, look, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="docs/explorer.png or docs/explorer.zh.png unless given")
    parser.add_argument("--state", help="what stands after # in the address")
    parser.add_argument("--language", default="en", choices=["en", "zh"])
    parser.add_argument("--scheme", default="light", choices=["light", "dark"])
    args = parser.parse_args()
    browser = shutil.which("chromium") or sys.exit("no Chromium here: apt-get install chromium")
    listening = listen("127.0.0.1", 0)
    service = open_service(["en", "zh"], corpora=sorted(ROOT.glob("samples/*.txt")))
    server = Server(configured(service), ready=lambda: None)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        with sync_playwright() as browsers:
            launched = browsers.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            look = {"locale": args.language, "color_scheme": args.scheme, "viewport": {"width": 1180, "height": 760}}
            page = launched.new_page(**look)
            page.goto(f"{address_of(listening)}#{args.state or STATES[args.language]}")
            page.wait_for_selector(".news:not(:has(*))", state="attached", timeout=300_000)
            page.wait_for_selector("main:not(:has([aria-busy])):not(:has(.pending))", timeout=300_000)
            page.screenshot(path=args.output or ROOT / "docs" / NAMES[args.language], full_page=True)
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
