// Draws the figures of a page, in the colours of the reader's theme, and again when that changes.
// ITEMS and DARK are put in their places: [element, figure] of each figure, and the dark colour for each light one.
(() => {
  const items = ITEMS, dark = DARK;
  const theme = window.matchMedia("(prefers-color-scheme: dark)");
  const isColour = (name) => typeof name === "string" && /(^|_)colou?r$|^fill$/.test(name);

  // A copy with other colours. Only what is named as a colour is one: a label of the user may be "#ffffff", too.
  function recoloured(value, inside) {
    if (typeof value === "string") return inside && value in dark ? dark[value] : value;
    if (Array.isArray(value)) {
      // A column is a pair of its name and its values.
      const column = value.length === 2 && isColour(value[0]);
      return value.map((each, index) => recoloured(each, inside || (column && index === 1)));
    }
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, recoloured(each, inside || isColour(name))]));
  }

  function draw() {
    for (const [id, figure] of items) {
      const element = document.getElementById(id);
      element.replaceChildren();
      element.classList.toggle("dark", theme.matches);
      Bokeh.embed.embed_item(theme.matches ? recoloured(figure, false) : figure, id);
    }
  }

  // A browser may print in the light theme. Figures that are drawn then come too late; the style inverts their colours.
  theme.addEventListener("change", () => { if (!window.matchMedia("print").matches) draw(); });
  window.addEventListener("beforeprint", () => {
    for (const [id] of items) {
      const element = document.getElementById(id);
      element.style.setProperty("--width", element.offsetWidth);
    }
  });
  draw();
})();
