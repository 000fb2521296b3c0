// Growth as a picture: small panels side by side, each with one measure against one size, as SVG text. Pure.

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Panel {
  readonly title: string;
  readonly unit: string;
  /** Sizes grow by factors: the x axis is logarithmic, the y axis begins at zero. x is above zero. */
  readonly points: readonly Point[];
}

const cell = { width: 240, height: 180 };
const inside = { left: 48, right: 16, top: 34, bottom: 26 };
const columns = 4;

/** @returns a whole SVG document; panels without points are left out */
export function drawPlot(panels: readonly Panel[]): string {
  const drawn = panels.filter(({ points }) => points.length > 0);
  const width = cell.width * Math.min(columns, Math.max(1, drawn.length));
  const height = cell.height * Math.max(1, Math.ceil(drawn.length / columns));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="10">`,
    // The text for screen readers.
    '<title>How the cost grows: time and memory against size</title>',
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...drawn.map((panel, index) => drawPanel(panel, index)),
    '</svg>',
    '',
  ].join('\n');
}

function drawPanel({ title, unit, points }: Panel, index: number): string {
  const sorted = [...points].sort((a, b) => a.x - b.x);
  const place = scale(sorted);
  const placed = sorted.map((point) => ({ ...point, ...place(point) }));
  const base = cell.height - inside.bottom;
  const corner = `${(index % columns) * cell.width} ${Math.floor(index / columns) * cell.height}`;
  return [
    `<g transform="translate(${corner})">`,
    `<text x="${inside.left}" y="16" font-weight="bold" fill="#222">${escapeXml(title)}</text>`,
    `<text x="${inside.left}" y="28" fill="#666">${escapeXml(unit)}</text>`,
    `<path d="M${inside.left} ${inside.top}V${base}H${cell.width - inside.right}" fill="none" stroke="#999"/>`,
    `<polyline points="${placed.map(({ left, top }) => `${left},${top}`).join(' ')}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>`,
    ...placed.map(({ left, top, x, y }) => drawPoint(left, top, short(x), short(y))),
    '</g>',
  ].join('\n');
}

function drawPoint(left: number, top: number, x: string, y: string): string {
  return [
    `<circle cx="${left}" cy="${top}" r="2.5" fill="#1f5fa8"/>`,
    `<text x="${left}" y="${round(top - 6)}" text-anchor="middle" fill="#222">${y}</text>`,
    `<text x="${left}" y="${cell.height - inside.bottom + 14}" text-anchor="middle" fill="#666">${x}</text>`,
  ].join('');
}

function scale(points: readonly Point[]): (point: Point) => { left: number; top: number } {
  const logs = points.map(({ x }) => Math.log10(x));
  const [first = 0, last = 0] = [logs[0], logs.at(-1)];
  const most = Math.max(...points.map(({ y }) => y)) || 1;
  const wide = cell.width - inside.left - inside.right - 24;
  const high = cell.height - inside.top - inside.bottom - 14;
  return ({ x, y }) => ({
    left: round(inside.left + 12 + (last === first ? 0 : ((Math.log10(x) - first) / (last - first)) * wide)),
    top: round(cell.height - inside.bottom - (y / most) * high),
  });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Three digits at most, and a letter for thousands. */
export function short(value: number): string {
  const units = [
    { from: 1e9, letter: 'G' },
    { from: 1e6, letter: 'M' },
    { from: 1e3, letter: 'k' },
  ];
  const unit = units.find(({ from }) => value >= from) ?? { from: 1, letter: '' };
  return `${Number((value / unit.from).toPrecision(value >= 1 ? 3 : 2))}${unit.letter}`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
