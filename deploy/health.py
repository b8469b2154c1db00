"""Whether the HTTP port of a scheduler, a worker or the service answers: exit status 0 or 1; for probes.

usage: streamkernel-health [URL]    default: STREAMKERNEL_HEALTH
"""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request


def main() -> int:
    url = sys.argv[1] if len(sys.argv) > 1 else os.environ["STREAMKERNEL_HEALTH"]
    # It asks its own machine whether it lives; whose certificate that shows is not the question.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=4.0) as answer:
            return 0 if answer.status == 200 else 1
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
