// The record of a soak: counts by kind, the last events, and the violations. Writes each event to a file as well, so that a
// kept state directory has all of them.
import * as fs from 'node:fs';

const keptEvents = 50;

export class SoakLog {
  readonly #file: string;
  readonly #startedMs = performance.now();
  readonly #counts = new Map<string, number>();
  readonly #last: string[] = [];
  readonly #violations: string[] = [];
  readonly #greatest = new Map<string, number>();

  /** @param file that each event is appended to */
  constructor(file: string) {
    this.#file = file;
  }

  elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  event(text: string): void {
    const line = `${(this.elapsedMs() / 1000).toFixed(2).padStart(8)} ${text}`;
    this.#last.push(line);
    if (this.#last.length > keptEvents) this.#last.shift();
    fs.appendFileSync(this.#file, `${line}\n`);
  }

  /** @param name as `action publish` */
  count(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }

  /** Records the greatest value of a measurement. */
  measure(name: string, value: number): void {
    this.#greatest.set(name, Math.max(this.#greatest.get(name) ?? 0, value));
  }

  violate(text: string): void {
    this.event(`VIOLATION ${text}`);
    this.#violations.push(text);
  }

  get violations(): readonly string[] {
    return this.#violations;
  }

  get lastEvents(): readonly string[] {
    return this.#last;
  }

  counted(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  greatest(name: string): number {
    return this.#greatest.get(name) ?? 0;
  }

  /** @returns the main counts in one line */
  progress(): string {
    const shown = ['actions', 'publishes', 'reads', 'files read', 'pulls', 'kills', 'recoveries', 'repairs'];
    const parts = shown.map((name) => `${name} ${this.counted(name)}`);
    return `${(this.elapsedMs() / 1000).toFixed(0)} s: ${parts.join(', ')}, violations ${this.#violations.length}`;
  }

  /** @returns a line for each count and measurement */
  totals(): string[] {
    const counts = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
    const greatest = [...this.#greatest].sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      ...counts.map(([name, count]) => `  ${name.padEnd(40)} ${count}`),
      ...greatest.map(([name, value]) => `  ${`${name}, greatest`.padEnd(40)} ${Math.round(value)}`),
      `  ${'violations'.padEnd(40)} ${this.#violations.length}`,
    ];
  }
}
