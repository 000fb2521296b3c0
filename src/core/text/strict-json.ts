// A JSON parser for untrusted bytes. It rejects duplicate names, lone surrogates, invalid UTF-8, a BOM, floats and deep nesting,
// which JSON.parse accepts: otherwise two readers of one signed file could find different contents. Pure.
import { JsonMistake } from './json-scan.js';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** Has no prototype, so that `constructor` and `__proto__` are names like others. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

export type StrictJson =
  | { readonly kind: 'value'; readonly value: JsonValue }
  /** `offset` in UTF-16 units from the start of the text. */
  | { readonly kind: 'refused'; readonly reason: string; readonly offset: number };

export interface StrictJsonLimits {
  /** 64 by default. */
  readonly maxDepth?: number;
}

/**
 * Minimum bytes for each object, array and member. Five megabytes of `{},` would become a third of a gigabyte: with the key of one
 * team an attacker could exhaust the memory of a host. The shortest real entries, those of a snapshot, have more than 20 bytes and
 * two members.
 */
const [bytesPerContainer, bytesPerMember] = [16, 10];
const smallFile = 1000;

/**
 * @param bytes UTF-8 text of one JSON value, with the minimum bytes above; its numbers are safe integers
 * @returns the value, or the reason of the refusal; never throws
 */
export function parseStrictJson(bytes: Uint8Array, limits: StrictJsonLimits = {}): StrictJson {
  const text = decode(bytes);
  if (text === undefined) return { kind: 'refused', reason: 'not UTF-8', offset: 0 };
  const reader = new Reader(text, bytes.length, limits);
  try {
    return { kind: 'value', value: reader.readDocument() };
  } catch (error) {
    if (error instanceof JsonMistake) return { kind: 'refused', reason: error.message, offset: error.offset };
    throw error;
  }
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    // ignoreBOM keeps a BOM in the text, where it is rejected: otherwise two files would have one content.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const quote = 0x22;
const backslash = 0x5c;
const numberToken = /-?[0-9][0-9.eE+-]*/y;
const integer = /^(?:0|-?[1-9][0-9]{0,15})$/;
const loneSurrogate = /\p{Surrogate}/u;
const literals = { true: true, false: false, null: null } as const;

class Reader {
  readonly #text: string;
  readonly #maxDepth: number;
  #containersLeft: number;
  #membersLeft: number;
  #at = 0;

  constructor(text: string, bytes: number, { maxDepth = 64 }: StrictJsonLimits) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#containersLeft = smallFile + Math.floor(bytes / bytesPerContainer);
    this.#membersLeft = smallFile + Math.floor(bytes / bytesPerMember);
  }

  readDocument(): JsonValue {
    const value = this.#readValue(0);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#refusal('text after the value');
    return value;
  }

  #readValue(depth: number): JsonValue {
    // The parser is recursive: without a bound, nested brackets would exhaust the stack.
    if (depth > this.#maxDepth) throw this.#refusal('nested too deeply');
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '{':
        return this.#readObject(depth);
      case '[':
        return this.#readArray(depth);
      case '"':
        return this.#readString();
      default:
        return this.#readScalar();
    }
  }

  #readObject(depth: number): JsonObject {
    this.#open();
    const object: Record<string, JsonValue> = Object.create(null);
    if (this.#take('}')) return object;
    do {
      this.#skipSpace();
      if (this.#text.charCodeAt(this.#at) !== quote) throw this.#refusal('a member name is missing');
      const nameAt = this.#at;
      const name = this.#readString();
      // Readers disagree about which duplicate counts: one would check a value, and another would use the other.
      if (name in object)
        throw new JsonMistake(`duplicate member ${JSON.stringify(name.slice(0, 80))}`, nameAt);
      if (this.#membersLeft === 0) throw new JsonMistake('too many members', nameAt);
      this.#membersLeft -= 1;
      if (!this.#take(':')) throw this.#refusal('":" is missing');
      object[name] = this.#readValue(depth + 1);
    } while (this.#take(','));
    if (!this.#take('}')) throw this.#refusal('"}" is missing');
    return object;
  }

  #open(): void {
    if (this.#containersLeft === 0) throw this.#refusal('too many objects and arrays');
    this.#containersLeft -= 1;
    this.#at += 1;
  }

  #readArray(depth: number): readonly JsonValue[] {
    this.#open();
    const values: JsonValue[] = [];
    if (this.#take(']')) return values;
    do {
      values.push(this.#readValue(depth + 1));
    } while (this.#take(','));
    if (!this.#take(']')) throw this.#refusal('"]" is missing');
    return values;
  }

  #readString(): string {
    const start = this.#at;
    let escaped = false;
    for (let at = start + 1; at < this.#text.length; at += 1) {
      const unit = this.#text.charCodeAt(at);
      if (unit === quote) {
        this.#at = at + 1;
        return escaped ? this.#unescape(start) : this.#text.slice(start + 1, at);
      }
      if (unit < 0x20) throw new JsonMistake('a control character in a string', at);
      if (unit === backslash) {
        escaped = true;
        at += 1;
      }
    }
    throw this.#refusal('the text ends inside a string');
  }

  #unescape(start: number): string {
    let value: unknown;
    try {
      value = JSON.parse(this.#text.slice(start, this.#at));
    } catch {
      throw new JsonMistake('a wrong escape in a string', start);
    }
    // A lone surrogate becomes U+FFFD in UTF-8: two different strings would have one signature.
    if (typeof value !== 'string' || loneSurrogate.test(value))
      throw new JsonMistake('a lone surrogate', start);
    return value;
  }

  #readScalar(): JsonValue {
    numberToken.lastIndex = this.#at;
    const digits = numberToken.exec(this.#text)?.[0];
    if (digits !== undefined) return this.#readNumber(digits);
    for (const [literal, value] of Object.entries(literals)) {
      if (!this.#text.startsWith(literal, this.#at)) continue;
      this.#at += literal.length;
      return value;
    }
    throw this.#refusal(this.#at < this.#text.length ? 'not JSON' : 'the text ends too early');
  }

  #readNumber(digits: string): number {
    const value = Number(digits);
    // 1.0, 1e0 and 9007199254740993 would be encoded as other texts.
    if (!integer.test(digits) || !Number.isSafeInteger(value)) throw this.#refusal('not a safe integer');
    this.#at += digits.length;
    return value;
  }

  #take(character: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #skipSpace(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.#at += 1;
    }
  }

  #refusal(reason: string): JsonMistake {
    return new JsonMistake(reason, this.#at);
  }
}
