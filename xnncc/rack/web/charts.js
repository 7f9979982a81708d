// One curve: a caption with the newest value, the line, and what its ends mean. A reader that cannot see gets a sentence.
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300, HEIGHT = 60, MARGIN = 4;

/** Return an empty figure whose line has class `name`. */
export function makeChart(name) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.append(document.createElement("span"), document.createElement("b"));
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("class", name);
  svg.append(path);
  const range = document.createElement("div");
  range.className = "range";
  range.append(document.createElement("span"), document.createElement("span"));
  figure.append(caption, svg, range);
  return figure;
}

/** Draw `points` [x, y]; `unit` and `place` put a y and an x into words. `isStep`: a value holds until the next. */
export function fillChart(figure, title, points, unit, place, isStep = false) {
  const known = points.filter(([x, y]) => typeof x === "number" && Number.isFinite(x) && typeof y === "number" && Number.isFinite(y));
  const [name, now] = figure.querySelectorAll("figcaption > *");
  const [from, between] = figure.querySelectorAll(".range > span");
  const svg = figure.querySelector("svg"), path = svg.firstChild;
  name.textContent = title;
  if (known.length === 0) {
    now.textContent = "unknown";
    from.textContent = between.textContent = "";
    path.removeAttribute("d");
    svg.setAttribute("aria-label", `${title}: unknown`);
    return;
  }
  const xs = known.map(([x]) => x), ys = known.map(([, y]) => y);
  const low = Math.min(...ys), high = Math.max(...ys), first = Math.min(...xs), last = Math.max(...xs);
  const right = (x) => MARGIN + ((WIDTH - 2 * MARGIN) * (x - first)) / (last - first || 1);
  const down = (y) => (high > low ? HEIGHT - MARGIN - ((HEIGHT - 2 * MARGIN) * (y - low)) / (high - low) : HEIGHT / 2);
  let d = "", before = 0;
  known.forEach(([x, y], n) => {
    const at = `${right(x).toFixed(1)} ${down(y).toFixed(1)}`;
    d += n === 0 ? `M${at}` : isStep ? `L${right(x).toFixed(1)} ${before.toFixed(1)}L${at}` : `L${at}`;
    before = down(y);
  });
  if (known.length === 1) d += `L${WIDTH - MARGIN} ${before.toFixed(1)}`;
  path.setAttribute("d", d);
  now.textContent = unit(ys.at(-1));
  from.textContent = place(first);
  between.textContent = low === high ? "" : `${unit(low).split(" ")[0]}–${unit(high)}`;
  svg.setAttribute("aria-label", `${title}: now ${unit(ys.at(-1))}, between ${unit(low)} and ${unit(high)}`);
}
