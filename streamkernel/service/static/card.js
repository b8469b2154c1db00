// The card of one model: its certificate, its residual curve, and a form to try a prediction.

import { percent, residualChart } from "/static/chart.js";
import { scoreName, scoreText } from "/static/standings.js";

function ago(seconds) {
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

function digits(number) {
  if (number === 0 || (Math.abs(number) >= 1e-4 && Math.abs(number) < 1e7)) return String(Number(number.toPrecision(6)));
  return number.toExponential(4);
}

export class Card {
  constructor(name, ask) {
    this.name = name;
    this.ask = ask;
    this.digest = null;
    this.root = document.getElementById("model-template").content.firstElementChild.cloneNode(true);
    this.find(".name").textContent = name;
    this.find("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.predict();
    });
    this.find(".from-example").addEventListener("click", () => this.fill(this.model.example));
    this.find(".from-means").addEventListener("click", () => this.fill(this.model.means));
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  async update(summary, place) {
    const problem = this.find(".problem");
    problem.hidden = summary.error === null;
    if (summary.error !== null) {
      const text = `${summary.ready ? "The newest generation cannot be used; the previous one is served." : "This model cannot be served."} ${summary.error.message}`;
      if (problem.textContent !== text) problem.textContent = text;
    }
    this.find(".body").hidden = this.find(".try").hidden = !summary.ready;
    if (!summary.ready) return;
    this.find(".generation").textContent = `generation ${summary.generation}, loaded ${ago(Date.now() / 1000 - summary.loaded)}`;
    this.find(".rank").textContent = place ? `${place[0]} of ${place[1]} on the same held-out rows` : "";
    if (summary.digest === this.digest) return;
    const answer = await this.ask(`/v1/models/${encodeURIComponent(this.name)}`);
    if (!answer.ok) return;
    this.model = await answer.json();
    this.digest = this.model.digest;
    this.draw();
  }

  draw() {
    const model = this.model;
    const targets = model.classes ? `${model.classes.length} classes` : model.target_names.join(", ");
    const kernel = model.kernel.charAt(0).toUpperCase() + model.kernel.slice(1).replace("_", " ");
    this.find(".kind").textContent = `${model.title}, ${kernel} kernel`;
    const held = model.held_out;
    // Support vectors span no basis of the kernel: there is no trace that they leave, and no curve.
    const spans = model.residual_curve.share.some((share) => share < 1);
    this.find("figure").hidden = !spans;
    const facts = [
      held ? [`${scoreName(held)}, ${held.rows.toLocaleString("en")} held-out rows`, scoreText(held), "headline"] : ["Held-out rows", "none", "headline"],
      ...(spans ? [["Residual trace", percent(model.relative_residual_trace), "wide"]] : []),
      [spans ? "Basis" : "Functions", model.basis_size.toLocaleString("en")],
      ["Sweeps", String(model.sweeps)],
      ["Rows", model.rows.toLocaleString("en")],
      ["Columns", model.columns.length.toLocaleString("en")],
      ...(targets ? [[!model.classes && model.target_names.length > 1 ? "Targets" : "Target", targets, "wide"]] : []),
    ];
    this.find(".facts").replaceChildren(
      ...facts.map(([term, value, kind]) => {
        const box = document.createElement("div");
        if (kind) box.className = kind;
        const label = document.createElement("dt"), text = document.createElement("dd");
        label.textContent = term;
        text.textContent = value;
        box.append(label, text);
        return box;
      }),
    );
    if (spans) this.find(".chart").replaceChildren(residualChart(model.residual_curve));
    this.find(".from-means").hidden = model.means === null;
    // Rows that are sparse have too many columns for a form.
    this.find(".try").hidden = model.sparse;
    if (!model.sparse) this.drawFields();
  }

  drawFields() {
    const names = JSON.stringify(this.model.columns);
    if (this.columns === names) return;
    this.columns = names;
    this.inputs = this.model.columns.map((name) => {
      const input = document.createElement("input");
      input.inputMode = "decimal";
      input.required = true;
      input.autocomplete = "off";
      input.name = name;
      return input;
    });
    this.find(".fields").replaceChildren(
      ...this.inputs.map((input) => {
        const label = document.createElement("label"), text = document.createElement("span");
        text.textContent = text.title = input.name;
        label.append(text, input);
        return label;
      }),
    );
    this.fill(this.model.example);
  }

  fill(values) {
    this.inputs.forEach((input, i) => {
      input.value = digits(values[i]);
      input.removeAttribute("aria-invalid");
    });
  }

  async predict() {
    const row = this.inputs.map((input) => Number(input.value.trim() || "x"));
    const wrong = row.findIndex((value) => !Number.isFinite(value));
    this.inputs.forEach((input, i) => (Number.isFinite(row[i]) ? input.removeAttribute("aria-invalid") : input.setAttribute("aria-invalid", "true")));
    if (wrong >= 0) {
      this.inputs[wrong].focus();
      return this.say(`${this.inputs[wrong].name} is not a number`, true);
    }
    const options = new URLSearchParams();
    if (this.model.std) options.set("std", "true");
    if (this.model.probabilities) options.set("probabilities", "true");
    try {
      const answer = await this.ask(`/v1/models/${encodeURIComponent(this.name)}/predict?${options}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ row }),
      });
      const body = await answer.json();
      if (!answer.ok) return this.say(body.error.message, true);
      this.show(body);
    } catch {
      this.say("the service does not answer", true);
    }
  }

  say(text, failed) {
    const output = this.find(".answer");
    output.className = failed ? "answer failed" : "answer";
    output.textContent = text;
    this.find(".bars").replaceChildren();
  }

  show({ prediction, decision, std, probabilities, classes }) {
    const list = (value) => (Array.isArray(value) ? value : [value]);
    const deviations = std === undefined ? [] : list(std);
    const parts = list(prediction).map((value, i) => {
      const text = typeof value === "number" && !this.model.classes ? digits(value) : String(value);
      return deviations.length ? `${text} ± ${Number(deviations[i].toPrecision(3))}` : text;
    });
    this.say(parts.join(", "), false);
    if (deviations.length) {
      const note = document.createElement("small");
      note.textContent = " one standard deviation";
      this.find(".answer").append(note);
    }
    if (decision !== undefined) {
      const note = document.createElement("small");
      note.textContent = ` ${prediction < 0 ? "an outlier" : "inside"}, decision value ${digits(decision)}`;
      this.find(".answer").append(note);
    }
    if (probabilities === undefined) return;
    const shown = probabilities.map((share, i) => [share, classes[i]]).sort((a, b) => b[0] - a[0]).slice(0, 12);
    this.find(".bars").replaceChildren(
      ...shown.flatMap(([share, label]) => {
        const [name, bar, filled, text] = ["span", "span", "span", "span"].map((kind) => document.createElement(kind));
        name.textContent = String(label);
        bar.className = "bar";
        filled.style.width = `${100 * share}%`;
        bar.append(filled);
        text.textContent = percent(share);
        return [name, bar, text];
      }),
    );
  }
}
