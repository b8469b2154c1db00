// A few numbers from the metrics for Prometheus.

let former = null;

function samples(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const match = /^(\w+)(?:\{(.*)\})? ([^ ]+)/.exec(line);
    if (!match || line.startsWith("#")) continue;
    const labels = Object.fromEntries([...(match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((pair) => [pair[1], pair[2]]));
    found.push({ name: match[1], labels, value: Number(match[3]) });
  }
  return found;
}

function whole(number) {
  return Math.round(number).toLocaleString("en");
}

function duration(seconds) {
  return seconds < 1 ? `${Number((1000 * seconds).toPrecision(2))} ms` : `${seconds} s`;
}

export function rates(text) {
  const all = samples(text);
  const sum = (name, keep = () => true) => all.filter((each) => each.name === name && keep(each.labels)).reduce((total, each) => total + each.value, 0);
  const now = { time: performance.now(), rows: sum("streamkernel_rows_predicted_total") };
  let rate = "–";
  if (former && now.time > former.time && now.rows >= former.rows) rate = whole((1000 * (now.rows - former.rows)) / (now.time - former.time));
  former = now;
  const predictions = ({ route }) => route === "predict";
  const buckets = all
    .filter((each) => each.name === "streamkernel_request_seconds_bucket" && predictions(each.labels))
    .map((each) => [each.labels.le === "+Inf" ? Infinity : Number(each.labels.le), each.value])
    .sort((a, b) => a[0] - b[0]);
  const count = buckets.length ? buckets[buckets.length - 1][1] : 0;
  const within = count ? buckets.find(([, total]) => total >= 0.99 * count)[0] : null;
  return {
    "n-rows": whole(now.rows),
    "n-rate": rate,
    "n-requests": whole(sum("streamkernel_requests_total", predictions)),
    "n-p99": within === null ? "–" : within === Infinity ? "over 30 s" : duration(within),
    "n-reloads": whole(sum("streamkernel_model_changes_total", ({ event }) => event === "reloaded")),
  };
}
