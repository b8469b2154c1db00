// Which models are better: by their scores on held-out rows, and only among those with the same rows of one table.

const less = (a, b) => a - b;
const better = { accuracy: (a, b) => b - a, rmse: less, relative_rmse: less, pinball: less };
const names = { accuracy: "Accuracy", rmse: "RMSE", relative_rmse: "RMSE in deviations", pinball: "Pinball loss" };

function group(model) {
  const found = model.ready ? model.held_out : null;
  return found && found.score !== null && found.measure in better ? `${found.measure} ${found.same_rows}` : null;
}

function groups(models) {
  const found = new Map();
  for (const model of models) {
    const key = group(model);
    if (key !== null) found.set(key, [...(found.get(key) ?? []), model]);
  }
  for (const [key, members] of found) {
    const compare = better[key.split(" ", 1)[0]];
    members.sort((a, b) => compare(a.held_out.score, b.held_out.score));
  }
  return found;
}

// Models that are served come first. Those of the same held-out rows stand together, the best first, at the place of
// the first of their names; what cannot be ranked keeps the order of the names.
export function ordered(models) {
  const ranked = groups(models), done = new Set(), found = [];
  for (const model of [...models].sort((a, b) => b.ready - a.ready)) {
    for (const each of ranked.get(group(model)) ?? [model]) {
      if (!done.has(each.name)) found.push(each);
      done.add(each.name);
    }
  }
  return found;
}

// Rank, and number of models that are ranked together, by name.
export function places(models) {
  const found = new Map();
  for (const members of groups(models).values()) {
    if (members.length < 2) continue;
    for (const model of members) {
      const above = members.filter((other) => better[model.held_out.measure](other.held_out.score, model.held_out.score) < 0);
      found.set(model.name, [1 + above.length, members.length]);
    }
  }
  return found;
}

// A number with its standard error; shares are in percent.
export function scoreText({ measure, score, standard_error: error }) {
  if (score === null) return "–";
  const unit = measure === "accuracy" ? 100 : 1, sign = measure === "accuracy" ? " %" : "";
  const text = `${Number((unit * score).toPrecision(3))}${sign}`;
  return error === null ? text : `${text} ± ${Number((unit * error).toPrecision(2))}${sign}`;
}

export function scoreName({ measure }) {
  return names[measure] ?? measure;
}

// One sentence about all models.
export function lead(models) {
  const served = models.filter((model) => model.ready);
  const found = [...groups(served).values()].filter((members) => members.length > 1);
  const text = served.length === 1 ? "One model" : `${served.length} models`;
  if (found.length !== 1) return found.length ? `${text}, ranked on the held-out rows of ${found.length} tables` : text;
  const [best] = found[0];
  const which = found[0].length < served.length ? `of ${found[0].length} with the same held-out rows, ` : "";
  return `${text}; ${which}${best.name} is the best on held-out rows: ${scoreName(best.held_out)} ${scoreText(best.held_out)}`;
}
