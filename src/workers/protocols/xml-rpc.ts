// The subset of XML-RPC that supervisord uses: calls with texts, integers and booleans; answers with texts, numbers, booleans, lists
// and structs. Pure and strict: no attributes, comments or document types, and only the five entities of XML, so that an answer
// cannot make the parser fetch or expand anything. The driver judges answers.

export type XmlRpcValue = string | number | boolean | readonly XmlRpcValue[] | XmlRpcStruct;
export type XmlRpcStruct = ReadonlyMap<string, XmlRpcValue>;

export type XmlRpcAnswer =
  | { readonly kind: 'value'; readonly value: XmlRpcValue }
  | { readonly kind: 'fault'; readonly code: number; readonly text: string }
  /** The text is not a valid answer; `at` is the position in characters. */
  | { readonly kind: 'malformed'; readonly at: number };

const maxDepth = 8;

/**
 * @param method as `supervisor.getState`
 * @param params in the order of the call, each number an integer; empty: an empty `params` element
 * @returns the XML text of the call, with `&`, `<` and `>` escaped. A text becomes `<string>`, a number `<int>`, a boolean
 *   `<boolean>` 1 or 0. Throws nothing.
 */
export function encodeXmlRpcCall(method: string, params: readonly (string | boolean | number)[]): string {
  const values = params.map((param) => `<param><value>${encodeValue(param)}</value></param>`);
  const call = `<methodName>${escaped(method)}</methodName><params>${values.join('')}</params>`;
  return `<?xml version="1.0"?><methodCall>${call}</methodCall>`;
}

/** @param value a number must be an integer */
function encodeValue(value: string | boolean | number): string {
  if (typeof value === 'string') return `<string>${escaped(value)}</string>`;
  return typeof value === 'number' ? `<int>${value}</int>` : `<boolean>${value ? 1 : 0}</boolean>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/**
 * @param text the whole body of the answer; the caller bounds its length
 * @returns `value` for a success, where a struct is a Map and a list an array; `fault` with the code and the text of a rejected
 *   call; `malformed` for any other text, the empty one included, with the position of the error. Throws nothing.
 */
export function parseXmlRpcAnswer(text: string): XmlRpcAnswer {
  const reader = new Reader(text);
  try {
    reader.prolog();
    const answer = reader.element('methodResponse', () => {
      if (reader.takes('<fault>')) return faultOf(reader);
      const value = reader.element('params', () => reader.element('param', () => readValue(reader, 0)));
      return { kind: 'value', value } as const;
    });
    reader.end();
    return answer;
  } catch (error) {
    if (error instanceof Malformed) return { kind: 'malformed', at: reader.at };
    throw error;
  }
}

/** Caught in this file. */
class Malformed extends Error {}

function faultOf(reader: Reader): XmlRpcAnswer {
  const value = readValue(reader, 0);
  reader.take('</fault>');
  if (!(value instanceof Map)) throw new Malformed();
  const [code, text] = [value.get('faultCode'), value.get('faultString')];
  if (typeof code !== 'number' || typeof text !== 'string') throw new Malformed();
  return { kind: 'fault', code, text };
}

function readValue(reader: Reader, depth: number): XmlRpcValue {
  if (depth > maxDepth) throw new Malformed();
  return reader.element('value', () => readTyped(reader, depth));
}

function readTyped(reader: Reader, depth: number): XmlRpcValue {
  if (reader.takes('<array>')) return readArray(reader, depth);
  if (reader.takes('<struct>')) return readStruct(reader, depth);
  for (const type of ['string', 'int', 'i4', 'boolean'] as const) {
    if (!reader.takes(`<${type}>`)) continue;
    const text = reader.text();
    reader.take(`</${type}>`);
    return type === 'string' ? text : numberOf(text, type);
  }
  // A value without a type element is a text.
  return reader.text();
}

function numberOf(text: string, type: 'int' | 'i4' | 'boolean'): number | boolean {
  if (type === 'boolean' && /^[01]$/.test(text)) return text === '1';
  if (type === 'boolean' || !/^-?\d{1,10}$/.test(text)) throw new Malformed();
  return Number(text);
}

function readArray(reader: Reader, depth: number): readonly XmlRpcValue[] {
  const values: XmlRpcValue[] = [];
  reader.take('<data>');
  while (!reader.takes('</data>')) values.push(readValue(reader, depth + 1));
  reader.take('</array>');
  return values;
}

function readStruct(reader: Reader, depth: number): XmlRpcStruct {
  const members = new Map<string, XmlRpcValue>();
  while (!reader.takes('</struct>')) {
    reader.element('member', () => {
      const name = reader.element('name', () => reader.text());
      // Refuse a repeated name, because parsers differ in which value they use.
      if (members.has(name)) throw new Malformed();
      members.set(name, readValue(reader, depth + 1));
    });
  }
  return members;
}

/** Parses one text from its beginning to its end. */
class Reader {
  readonly #text: string;
  /** Characters read so far. */
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  prolog(): void {
    const pattern = /^<\?xml version=['"]1\.0['"]( encoding=['"][Uu][Tt][Ff]-8['"])? ?\?>/;
    this.at = pattern.exec(this.#text)?.[0].length ?? 0;
  }

  element<T>(name: string, read: () => T): T {
    this.take(`<${name}>`);
    const value = read();
    this.take(`</${name}>`);
    return value;
  }

  take(tag: string): void {
    if (!this.takes(tag)) throw new Malformed();
  }

  /** Consumes the tag if it is next. @returns whether it was */
  takes(tag: string): boolean {
    const next = this.#afterSpace();
    if (!this.#text.startsWith(tag, next)) return false;
    this.at = next + tag.length;
    return true;
  }

  /** Consumes the characters up to the next tag. */
  text(): string {
    const end = this.#text.indexOf('<', this.at);
    if (end < 0) throw new Malformed();
    const plain = decoded(this.#text.slice(this.at, end));
    this.at = end;
    return plain;
  }

  /** Requires that only white space is left. */
  end(): void {
    this.at = this.#afterSpace();
    if (this.at < this.#text.length) throw new Malformed();
  }

  #afterSpace(): number {
    // The sticky pattern matches only at the position, so that megabytes of white space are scanned once.
    const space = /[ \t\r\n]*/y;
    space.lastIndex = this.at;
    space.test(this.#text);
    return Math.max(space.lastIndex, this.at);
  }
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decoded(raw: string): string {
  return raw.replaceAll(/&([^;&]{0,10}(?:;|$))?/g, (_all, name: string | undefined) => {
    const plain = name?.endsWith(';') ? entities[name.slice(0, -1)] : undefined;
    if (plain === undefined) throw new Malformed();
    return plain;
  });
}
