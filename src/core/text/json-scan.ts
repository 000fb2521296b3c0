// Scans the text of a JSON document for facts that JSON.parse does not report: the position of the first syntax error, duplicate
// members, and the positions of values. Builds no data. Pure.

export interface JsonProblem {
  /** UTF-16 units from the start of the text. */
  readonly offset: number;
  readonly text: string;
}

export interface JsonScan {
  /** Duplicate members up to the first syntax error, which is last; empty for strict JSON. */
  readonly problems: readonly JsonProblem[];
  /** Positions of the requested pointers that exist. */
  readonly offsets: ReadonlyMap<string, number>;
}

export interface JsonScanOptions {
  readonly maxDepth: number;
  /** Objects and arrays together. */
  readonly maxContainers: number;
  readonly maxProblems: number;
  /** Requested JSON pointers (RFC 6901). */
  readonly wanted?: ReadonlySet<string>;
}

/** Scans the text once; never throws. */
export function scanJson(text: string, options: JsonScanOptions): JsonScan {
  const scanner = new Scanner(text, options);
  try {
    scanner.document();
  } catch (error) {
    if (!(error instanceof JsonMistake)) throw error;
    scanner.problems.push({ offset: error.offset, text: error.message });
  }
  return scanner;
}

/** A syntax error and its position, in UTF-16 units from the start of the text. */
export class JsonMistake extends Error {
  readonly offset: number;
  constructor(text: string, offset: number) {
    super(text);
    this.offset = offset;
  }
}

const space = /[ \t\r\n]*/y;
const string = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const scalar = /(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.+-])/y;

class Scanner implements JsonScan {
  readonly problems: JsonProblem[] = [];
  readonly offsets = new Map<string, number>();
  readonly #text: string;
  readonly #options: JsonScanOptions;
  readonly #path: string[] = [];
  #containers = 0;
  #at = 0;

  constructor(text: string, options: JsonScanOptions) {
    this.#text = text;
    this.#options = options;
  }

  document(): void {
    this.#value();
    if (this.#next() !== undefined) throw new JsonMistake('text after the value', this.#at);
  }

  #value(): void {
    const first = this.#next();
    this.#note();
    // The scanner is recursive: without a bound, nested brackets would exhaust the stack.
    if (this.#path.length > this.#options.maxDepth) throw new JsonMistake('nested too deeply', this.#at);
    if (first === '{' || first === '[') this.#open();
    if (first === '{') this.#members();
    else if (first === '[') this.#elements();
    else if (first === '"') this.#token(string, 'not a valid string');
    else this.#token(scalar, first === undefined ? 'the text ends too early' : 'not a JSON value');
  }

  #open(): void {
    this.#containers += 1;
    if (this.#containers <= this.#options.maxContainers) return;
    throw new JsonMistake('too many objects and arrays', this.#at);
  }

  #note(): void {
    const { wanted } = this.#options;
    if (wanted === undefined || wanted.size === 0) return;
    const pointer = this.#path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
    if (wanted.has(pointer)) this.offsets.set(pointer, this.#at);
  }

  #members(): void {
    const names = new Set<string>();
    this.#at += 1;
    if (this.#take('}')) return;
    do {
      this.#next();
      const nameAt = this.#at;
      const name = String(JSON.parse(this.#token(string, 'a member name is missing')));
      if (names.has(name)) this.#duplicate(name, nameAt);
      names.add(name);
      if (!this.#take(':')) throw new JsonMistake('":" is missing', this.#at);
      this.#path.push(name);
      this.#value();
      this.#path.pop();
    } while (this.#take(','));
    if (!this.#take('}')) throw new JsonMistake('"," or "}" is missing', this.#at);
  }

  #elements(): void {
    this.#at += 1;
    if (this.#take(']')) return;
    let index = 0;
    do {
      this.#path.push(String(index));
      this.#value();
      this.#path.pop();
      index += 1;
    } while (this.#take(','));
    if (!this.#take(']')) throw new JsonMistake('"," or "]" is missing', this.#at);
  }

  #duplicate(name: string, offset: number): void {
    this.problems.push({ offset, text: `the member ${JSON.stringify(name.slice(0, 80))} occurs twice` });
    if (this.problems.length >= this.#options.maxProblems) throw new JsonMistake('too many mistakes', offset);
  }

  /** @returns the next character that is no space, without consuming it */
  #next(): string | undefined {
    space.lastIndex = this.#at;
    this.#at += space.exec(this.#text)?.[0].length ?? 0;
    return this.#text[this.#at];
  }

  #take(character: string): boolean {
    if (this.#next() !== character) return false;
    this.#at += 1;
    return true;
  }

  #token(pattern: RegExp, mistake: string): string {
    pattern.lastIndex = this.#at;
    const token = pattern.exec(this.#text)?.[0];
    if (token === undefined) throw new JsonMistake(mistake, this.#at);
    this.#at += token.length;
    return token;
  }
}
