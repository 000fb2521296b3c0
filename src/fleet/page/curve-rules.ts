// The line of a curve of confirmations: steps, since a host confirms at a moment and stays confirmed. Pure: numbers into the
// path of an SVG whose corners are 0,0 and the given width and height.

export interface CurvePoint {
  readonly atMs: number;
  readonly confirmed: number;
}

export interface CurveBox {
  readonly width: number;
  readonly height: number;
  /** Of the upper edge. */
  readonly hosts: number;
  /** Of the right edge: the line goes on flat up to here. */
  readonly untilMs: number;
}

/** @returns `d` of the line; '' without a point */
export function curvePath(points: readonly CurvePoint[], box: CurveBox): string {
  const [first] = points;
  if (first === undefined) return '';
  const endMs = Math.max(box.untilMs, ...points.map(({ atMs }) => atMs));
  const spanMs = Math.max(1, endMs - first.atMs);
  const most = Math.max(1, box.hosts, ...points.map(({ confirmed }) => confirmed));
  const x = (atMs: number): number => tenth(((atMs - first.atMs) / spanMs) * box.width);
  const y = (count: number): number => tenth(box.height - (count / most) * box.height);
  const steps = points.map(({ atMs, confirmed }) => `H${x(atMs)}V${y(confirmed)}`);
  return `M0 ${box.height}${steps.join('')}H${box.width}`;
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}
