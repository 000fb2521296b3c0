// XML-RPC as far as supervisord speaks it: calls of texts and booleans, answers of texts, numbers, booleans,
// lists and structs. Pure and strict: no attributes, comments, document types or entities beyond XML's own five,
// so that no answer can make the reader fetch, expand or guess anything. What an answer means is the driver's.

export type XmlRpcValue = string | number | boolean | readonly XmlRpcValue[] | XmlRpcStruct;
export type XmlRpcStruct = ReadonlyMap<string, XmlRpcValue>;

export type XmlRpcAnswer =
  | { readonly kind: 'value'; readonly value: XmlRpcValue }
  | { readonly kind: 'fault'; readonly code: number; readonly text: string }
  /** Not what this reader takes for an answer; `at` counts characters. */
  | { readonly kind: 'malformed'; readonly at: number };

const maxDepth = 8;

/** @param method as `supervisor.getState` */
export function encodeXmlRpcCall(method: string, params: readonly (string | boolean)[]): string {
  const values = params.map((param) => {
    const inner =
      typeof param === 'string'
        ? `<string>${escaped(param)}</string>`
        : `<boolean>${param ? 1 : 0}</boolean>`;
    return `<param><value>${inner}</value></param>`;
  });
  const call = `<methodName>${escaped(method)}</methodName><params>${values.join('')}</params>`;
  return `<?xml version="1.0"?><methodCall>${call}</methodCall>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** @param text the whole body of the answer; its length is the caller's to bound */
export function parseXmlRpcAnswer(text: string): XmlRpcAnswer {
  const reader = createReader(text);
  try {
    reader.prolog();
    reader.open('methodResponse');
    const answer = reader.opens('fault') ? faultOf(reader) : resultOf(reader);
    reader.close('methodResponse');
    reader.end();
    return answer;
  } catch (error) {
    if (error instanceof Malformed) return { kind: 'malformed', at: reader.at() };
    throw error;
  }
}

/** Never leaves this file. */
class Malformed extends Error {}

function resultOf(reader: Reader): XmlRpcAnswer {
  reader.open('params');
  reader.open('param');
  const value = readValue(reader, 0);
  reader.close('param');
  reader.close('params');
  return { kind: 'value', value };
}

function faultOf(reader: Reader): XmlRpcAnswer {
  const value = readValue(reader, 0);
  reader.close('fault');
  if (!(value instanceof Map)) throw new Malformed();
  const [code, text] = [value.get('faultCode'), value.get('faultString')];
  if (typeof code !== 'number' || typeof text !== 'string') throw new Malformed();
  return { kind: 'fault', code, text };
}

function readValue(reader: Reader, depth: number): XmlRpcValue {
  if (depth > maxDepth) throw new Malformed();
  reader.open('value');
  const value = readTyped(reader, depth);
  reader.close('value');
  return value;
}

function readTyped(reader: Reader, depth: number): XmlRpcValue {
  if (reader.opens('array')) return readArray(reader, depth);
  if (reader.opens('struct')) return readStruct(reader, depth);
  for (const type of ['string', 'int', 'i4', 'boolean'] as const) {
    if (!reader.opens(type)) continue;
    const text = reader.text();
    reader.close(type);
    return type === 'string' ? text : numberOf(text, type);
  }
  // A value without a type is a text.
  return reader.text();
}

function numberOf(text: string, type: 'int' | 'i4' | 'boolean'): number | boolean {
  if (type === 'boolean' && /^[01]$/.test(text)) return text === '1';
  if (type === 'boolean' || !/^-?\d{1,10}$/.test(text)) throw new Malformed();
  return Number(text);
}

function readArray(reader: Reader, depth: number): readonly XmlRpcValue[] {
  const values: XmlRpcValue[] = [];
  reader.open('data');
  while (!reader.closes('data')) values.push(readValue(reader, depth + 1));
  reader.close('array');
  return values;
}

function readStruct(reader: Reader, depth: number): XmlRpcStruct {
  const members = new Map<string, XmlRpcValue>();
  while (!reader.closes('struct')) {
    reader.open('member');
    reader.open('name');
    const name = reader.text();
    reader.close('name');
    // Of two values for one name another reader might take the other one.
    if (members.has(name)) throw new Malformed();
    members.set(name, readValue(reader, depth + 1));
    reader.close('member');
  }
  return members;
}

interface Reader {
  prolog(): void;
  /** Takes `<name>` or fails. */
  open(name: string): void;
  /** Takes `<name>` if it is next. */
  opens(name: string): boolean;
  close(name: string): void;
  closes(name: string): boolean;
  /** Takes the characters up to the next tag. */
  text(): string;
  /** Nothing but white space is left. */
  end(): void;
  at(): number;
}

function createReader(text: string): Reader {
  let at = 0;
  // Sticky and possibly empty: it matches where it stands, and megabytes of white space cost one look each time.
  const space = /[ \t\r\n]*/y;
  const skipSpace = (): number => {
    space.lastIndex = at;
    space.test(text);
    return Math.max(space.lastIndex, at);
  };
  const takes = (tag: string): boolean => {
    const next = skipSpace();
    if (!text.startsWith(tag, next)) return false;
    at = next + tag.length;
    return true;
  };
  const take = (tag: string): void => {
    if (!takes(tag)) throw new Malformed();
  };
  return {
    prolog: () => {
      const [found = ''] =
        /^<\?xml version=['"]1\.0['"]( encoding=['"][Uu][Tt][Ff]-8['"])? ?\?>/.exec(text) ?? [];
      at = found.length;
    },
    open: (name) => take(`<${name}>`),
    opens: (name) => takes(`<${name}>`),
    close: (name) => take(`</${name}>`),
    closes: (name) => takes(`</${name}>`),
    text: () => {
      const end = text.indexOf('<', at);
      if (end < 0) throw new Malformed();
      const raw = text.slice(at, end);
      const plain = decoded(raw);
      at = end;
      return plain;
    },
    end: () => {
      at = skipSpace();
      if (at < text.length) throw new Malformed();
    },
    at: () => at,
  };
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decoded(raw: string): string {
  return raw.replaceAll(/&([^;&]{0,10}(?:;|$))?/g, (_all, name: string | undefined) => {
    const plain = name?.endsWith(';') ? entities[name.slice(0, -1)] : undefined;
    if (plain === undefined) throw new Malformed();
    return plain;
  });
}
