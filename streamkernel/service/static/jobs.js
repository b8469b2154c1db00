// The jobs and their progress: requested every second while one runs, and less often otherwise.

const BUSY = 1000, IDLE = 5000, HIDDEN = 15000, SLOWEST = 30000;
const FEW = 8, SURE = 4000;
const ACTIVE = new Set(["queued", "running", "interrupted", "cancelling"]);
const at = (id) => document.getElementById(id);

function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

function bytes(number) {
  return number < 1e9 ? `${Math.round(number / 1e6)} MB` : `${Number((number / 1e9).toPrecision(3))} GB`;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

class Row {
  constructor(id, ask, changed) {
    this.id = id;
    this.ask = ask;
    this.changed = changed;
    this.last = 0;
    this.root = at("job-template").content.firstElementChild.cloneNode(true);
    this.find(".cancel").addEventListener("click", () => this.cancel());
    this.find(".show-log").addEventListener("click", () => {
      const hidden = (this.find(".log").hidden = !this.find(".log").hidden);
      this.find(".show-log").setAttribute("aria-expanded", String(!hidden));
      this.readLog();
    });
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  update(job, now) {
    this.job = job;
    const active = ACTIVE.has(job.status), progress = job.progress;
    this.root.className = `job ${job.status}`;
    say(this.find(".name"), job.model ?? job.id);
    say(this.find(".kind"), job.estimator ? `${job.estimator} on ${job.table}` : "");
    say(this.find(".state-text"), job.status);
    say(this.find(".elapsed"), job.submitted ? clock((active ? now : job.changed) - job.submitted) : "");
    this.find(".elapsed").title = job.submitted ? `submitted ${new Date(1000 * job.submitted).toLocaleString()}` : "";
    this.bar(job, progress);
    say(this.find(".now"), this.words(job, progress));
    const problem = this.find(".problem");
    problem.hidden = job.error === null;
    if (job.error !== null) say(problem, `${job.error.type}: ${job.error.message}`);
    this.find(".cancel").hidden = !active || job.status === "cancelling";
    this.find(".show-log").hidden = !job.submitted;
    if (active || this.active) this.readLog();
    this.active = active;
  }

  bar(job, progress) {
    let share = job.status === "done" ? 1 : progress?.share ?? 0;
    if (share === 0 && progress?.sweeps_planned) {
      const within = progress.rows_total ? Math.min(1, progress.rows_done / progress.rows_total) : 0;
      // The planned number of sweeps is an upper bound. The last percent is shown at the end only.
      share = Math.min(0.99, (progress.sweeps_done + (progress.rows_done < progress.rows_total ? within : 0)) / progress.sweeps_planned);
    }
    const bar = this.find(".sweeps");
    // A job that ended before its first sweep has no progress to draw.
    bar.hidden = share === 0 && !ACTIVE.has(job.status);
    bar.firstElementChild.style.width = `${(100 * share).toFixed(1)}%`;
    bar.setAttribute("aria-valuemax", "100");
    bar.setAttribute("aria-valuenow", (100 * share).toFixed(0));
    bar.setAttribute("aria-label", `progress of ${job.model ?? job.id}`);
  }

  words(job, progress) {
    if (job.result) return `${job.result.basis_size.toLocaleString("en")} basis functions leave ${Number((100 * job.result.relative_residual_trace).toPrecision(3))} % of the trace`;
    if (!progress) return job.status === "queued" ? "waits for a worker" : "";
    // A job that failed before its first sweep shows its error instead.
    if (!progress.sweep && !ACTIVE.has(job.status)) return "";
    const parts = [`sweep ${Math.min(progress.sweeps_done + 1, progress.sweeps_planned ?? Infinity)}${progress.sweeps_planned ? ` of ${progress.sweeps_planned}` : ""}`];
    if (progress.sweep) parts[0] += `, ${progress.sweep}`;
    if (progress.rows_total) parts.push(`${progress.rows_done.toLocaleString("en")} of ${progress.rows_total.toLocaleString("en")} rows`);
    if (progress.seconds_left != null && ACTIVE.has(job.status)) parts.push(`about ${clock(progress.seconds_left)} left`);
    if (progress.peak_bytes) parts.push(bytes(progress.peak_bytes));
    if (progress.sweeps_resumed) parts.push(`${progress.sweeps_resumed} resumed`);
    return parts.join(" · ");
  }

  async cancel() {
    const button = this.find(".cancel");
    if (!button.classList.contains("sure")) {
      button.classList.add("sure");
      button.textContent = "Really?";
      setTimeout(() => this.unsure(), SURE);
      return;
    }
    this.unsure();
    button.disabled = true;
    try {
      const answer = await this.ask(`/v1/jobs/${this.id}`, { method: "DELETE" });
      if (!answer.ok && answer.status !== 409) throw new Error((await answer.json()).error.message);
    } catch (error) {
      say(this.find(".now"), error.message);
    }
    button.disabled = false;
    this.changed();
  }

  unsure() {
    const button = this.find(".cancel");
    button.classList.remove("sure");
    button.textContent = "Cancel";
  }

  async readLog() {
    if (this.find(".log").hidden || this.reading) return;
    this.reading = true;
    try {
      const answer = await this.ask(`/v1/jobs/${this.id}/logs?after=${this.last}`);
      if (!answer.ok) return;
      const { events, last } = await answer.json();
      this.last = last;
      const list = this.find(".log");
      list.append(...events.map((event) => {
        const [line, when, text] = ["li", "span", "span"].map((kind) => document.createElement(kind));
        if (event.level !== "info") line.className = "warning";
        when.textContent = new Date(1000 * event.time).toLocaleTimeString("en-GB");
        text.textContent = event.text;
        line.append(when, text);
        return line;
      }));
      if (events.length) list.scrollTop = list.scrollHeight;
    } catch {
      // The next refresh tries again.
    } finally {
      this.reading = false;
    }
  }
}

export class Jobs {
  constructor(ask) {
    this.ask = ask;
    this.rows = new Map();
    this.timer = null;
    this.running = false;
    this.all = false;
    this.wait = BUSY;
    at("jobs-more").addEventListener("click", () => {
      this.all = !this.all;
      this.wake();
    });
  }

  start() {
    if (this.running) return;
    this.running = true;
    this.wake();
  }

  stop() {
    this.running = false;
    clearTimeout(this.timer);
    at("jobs-section").hidden = true;
  }

  wake() {
    clearTimeout(this.timer);
    if (this.running && !this.refreshing) this.refresh();
  }

  async refresh() {
    this.refreshing = true;
    try {
      const answer = await this.ask("/v1/jobs?limit=50");
      const body = await answer.json();
      if (answer.status === 401) return;
      if (!answer.ok) throw new Error(body.error.message);
      this.show(body);
      at("jobs-problem").hidden = true;
      this.wait = body.jobs.some((job) => ACTIVE.has(job.status)) ? BUSY : IDLE;
    } catch (error) {
      // Wait longer after every failure, so that a service in trouble gets fewer requests.
      this.wait = Math.min(2 * this.wait, SLOWEST);
      at("jobs-section").hidden = false;
      at("jobs-problem").hidden = false;
      say(at("jobs-problem"), `Jobs cannot be read: ${error.message}`);
    } finally {
      this.refreshing = false;
    }
    clearTimeout(this.timer);
    if (this.running) this.timer = setTimeout(() => this.refresh(), document.hidden ? HIDDEN : this.wait);
  }

  show({ jobs, time }) {
    const active = jobs.filter((job) => ACTIVE.has(job.status));
    const ended = jobs.filter((job) => !ACTIVE.has(job.status));
    const shown = [...active, ...(this.all ? ended : ended.slice(0, Math.max(2, FEW - active.length)))];
    const names = new Set(shown.map((job) => job.id));
    for (const [id, row] of this.rows) {
      if (!names.has(id)) {
        row.root.remove();
        this.rows.delete(id);
      }
    }
    let before = null;
    for (const job of shown) {
      let row = this.rows.get(job.id);
      if (!row) {
        row = new Row(job.id, this.ask, () => this.wake());
        this.rows.set(job.id, row);
      }
      const place = before === null ? at("jobs").firstElementChild : before.nextElementSibling;
      if (place !== row.root) at("jobs").insertBefore(row.root, place);
      before = row.root;
      row.update(job, time);
    }
    say(at("jobs-count"), active.length ? `${active.length} active` : "");
    at("jobs-empty").hidden = jobs.length > 0;
    const more = at("jobs-more");
    more.hidden = !this.all && shown.length === jobs.length;
    say(more, this.all ? "Show fewer" : `Show ${jobs.length - shown.length} more`);
    at("jobs-section").hidden = false;
  }
}
