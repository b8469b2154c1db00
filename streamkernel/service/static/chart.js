// The residual curve as SVG: the share of the trace that the first t basis functions leave. Both axes are logarithmic.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 420, HEIGHT = 218, LEFT = 46, RIGHT = 14, TOP = 12, BOTTOM = 26;

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function power(exponent) {
  return "10" + [...String(exponent)].map((digit) => SUPERSCRIPTS[digit]).join("");
}

export function percent(share) {
  if (share === 0) return "0 %";
  if (share < 1e-5) {
    const exponent = Math.floor(Math.log10(share));
    return `${(share / 10 ** exponent).toFixed(1)} × ${power(exponent)}`;
  }
  return `${Number((100 * share).toPrecision(3))} %`;
}

function shareTick(share) {
  return share > 0.9e-4 ? `${Number((100 * share).toPrecision(1))} %` : power(Math.round(Math.log10(share)));
}

export function residualChart(curve) {
  const points = curve.basis_size
    .map((rank, i) => [rank, curve.share[i]])
    .filter(([rank, share]) => rank > 0 && share > 0);
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", focusable: "false" });
  if (points.length < 2) {
    svg.append(element("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "no curve: fewer than two basis functions"));
    return svg;
  }
  const [last, left] = points[points.length - 1];
  svg.setAttribute("aria-label", `With ${last} basis functions ${percent(left)} of the trace is left.`);
  const lowest = Math.min(...points.map(([, share]) => share)), highest = Math.max(1, ...points.map(([, share]) => share));
  const bottom = Math.min(Math.floor(Math.log10(lowest) + 1e-9), -1), top = Math.log10(highest);
  const x = (rank) => LEFT + ((WIDTH - LEFT - RIGHT) * Math.log(rank)) / Math.log(last);
  const y = (share) => TOP + ((HEIGHT - TOP - BOTTOM) * (top - Math.log10(share))) / (top - bottom);
  const floor = HEIGHT - BOTTOM;

  const every = Math.ceil((top - bottom) / 5);
  // For two decades or fewer, lines at powers of ten alone are too few to read a value.
  const between = top - bottom <= 2 ? [5, 2] : [];
  for (let exponent = 0; exponent >= bottom; exponent -= every) {
    for (const share of [10 ** exponent, ...between.map((digit) => digit * 10 ** (exponent - 1))]) {
      if (share < 0.999 * 10 ** bottom) continue;
      const at = y(share);
      svg.append(element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }));
      svg.append(element("text", { x: LEFT - 7, y: at + 4, "text-anchor": "end" }, shareTick(share)));
    }
  }
  for (let rank = 1; rank <= last; rank *= 10) {
    if (rank > 1) svg.append(element("line", { class: "grid", x1: x(rank), x2: x(rank), y1: TOP, y2: floor }));
    // The end of the axis has a label; a power of ten too close to it has none.
    if (x(last) - x(rank) > 34) svg.append(element("text", { x: x(rank), y: HEIGHT - 8, "text-anchor": "middle" }, rank.toLocaleString("en")));
  }
  svg.append(element("text", { x: x(last), y: HEIGHT - 8, "text-anchor": "end" }, last.toLocaleString("en")));
  svg.append(element("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: floor, y2: floor }));

  const path = points.map(([rank, share]) => `${x(rank).toFixed(1)},${y(share).toFixed(1)}`);
  svg.append(element("path", { class: "area", d: `M${x(points[0][0])},${floor}L${path.join("L")}L${x(last)},${floor}Z` }));
  svg.append(element("path", { class: "curve", d: `M${path.join("L")}` }));
  svg.append(element("circle", { class: "end", cx: x(last), cy: y(left), r: 4.5 }));

  const marker = element("line", { class: "marker", y1: TOP, y2: floor, visibility: "hidden" });
  const label = element("text", { class: "label", y: TOP + 11, visibility: "hidden" });
  svg.append(marker, label);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const [rank, share] = points.reduce((best, point) => (Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best));
    const right = x(rank) > WIDTH / 2;
    for (const key of ["x1", "x2"]) marker.setAttribute(key, x(rank));
    label.setAttribute("x", x(rank) + (right ? -7 : 7));
    label.setAttribute("text-anchor", right ? "end" : "start");
    label.textContent = `${rank.toLocaleString("en")}: ${percent(share)}`;
    for (const item of [marker, label]) item.setAttribute("visibility", "visible");
  });
  svg.addEventListener("pointerleave", () => {
    for (const item of [marker, label]) item.setAttribute("visibility", "hidden");
  });
  return svg;
}
