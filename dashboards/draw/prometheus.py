"""Asks a real Prometheus.

Place: the first step of drawing a dashboard. What comes back is as its HTTP API
gives it; frames.py makes columns of it.
"""

import json
import urllib.parse
import urllib.request


class QueryError(Exception):
    """Prometheus refused a query: the message says which and why."""


class Prometheus:
    def __init__(self, url, begins, ends):
        """A time range in seconds since the epoch, as a dashboard has one."""
        self.url = url.rstrip("/")
        self.begins = begins
        self.ends = ends

    def instant(self, expression):
        """Series with one sample each: [{metric, value: [moment, text]}]."""
        data = self._ask("query", query=expression, time=self.ends)
        if data["resultType"] == "scalar":
            return [{"metric": {}, "value": data["result"]}]
        return data["result"]

    def range(self, expression, step):
        """Series over the time range: [{metric, values: [[moment, text], …]}]."""
        # Grafana lets a range begin at a whole step.
        begins = self.begins // step * step
        data = self._ask(
            "query_range", query=expression, start=begins, end=self.ends, step=step
        )
        return data["result"]

    def series(self, selector):
        """The label sets that a selector had within the time range."""
        return self._ask("series", **{"match[]": selector, "start": self.begins, "end": self.ends})

    def label_values(self, label):
        return self._ask(f"label/{label}/values", start=self.begins, end=self.ends)

    def _ask(self, path, **parameters):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        # A proxy of the environment is not asked: Prometheus runs here.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=60) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            answer = json.load(error)
        if answer["status"] != "success":
            raise QueryError(f"{answer.get('error')}: {parameters}")
        return answer["data"]
