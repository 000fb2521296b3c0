import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type JsonValue, parseStrictJson, type StrictJson } from '../../../../src/core/text/strict-json.js';

function parse(text: string): StrictJson {
  return parseStrictJson(Buffer.from(text));
}

function refused(text: string | Uint8Array): string {
  const result = typeof text === 'string' ? parse(text) : parseStrictJson(text);
  return result.kind === 'refused' ? result.reason : `taken: ${JSON.stringify(result.value)}`;
}

/** Floats and lone surrogates have no place in signed files. */
const signable = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    fc.maxSafeInteger().map((number) => (number === 0 ? 0 : number)),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.string({ unit: 'binary' }), tie('value'), { maxKeys: 4 }),
  ) as fc.Arbitrary<JsonValue>,
})).value;

describe('parseStrictJson', () => {
  it('parses the output of JSON.stringify, with any white space', () => {
    fc.assert(
      fc.property(signable, fc.constantFrom(0, 2, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space);
        const result = parse(` ${text}\r\n`);
        assert.equal(result.kind === 'value' ? JSON.stringify(result.value, null, space) : result, text);
      }),
    );
  });

  it('accepts no text that JSON.parse rejects', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b"',
      '1',
      '-',
      '0',
      'true',
      'nul',
      ' ',
      '\\',
      '"',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        if (parse(text).kind === 'value') assert.doesNotThrow(() => JSON.parse(text), text);
      }),
      { numRuns: 2000 },
    );
  });

  it('rejects a duplicate member, also with other escapes', () => {
    assert.match(refused('{"a":1,"a":2}'), /duplicate/);
    assert.match(refused('{"a":1,"\\u0061":2}'), /duplicate/);
    assert.match(refused('{"x":{"__proto__":1,"__proto__":2}}'), /duplicate/);
  });

  it('returns objects without a prototype, so that no name is special', () => {
    const result = parse('{"__proto__":{"polluted":1},"constructor":2}');
    assert.ok(result.kind === 'value');
    const value = result.value as Record<string, unknown>;
    assert.deepEqual(Object.keys(value), ['__proto__', 'constructor']);
    assert.equal(Object.getPrototypeOf(value), null);
    assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
    assert.equal((parse('{}') as { value: Record<string, unknown> }).value['toString'], undefined);
  });

  for (const text of ['1.0', '1e3', '-0', '01', '9007199254740993', '1'.repeat(400), '-']) {
    it(`refuses the number ${text.slice(0, 20)}`, () => assert.match(refused(text), /integer|not JSON/));
  }

  for (const text of ['"\\ud800"', '"\\udc00\\ud800"', '"a\nb"', '"\\x"', '"\\u12"', '"open', '"\\"']) {
    it(`refuses the string ${JSON.stringify(text)}`, () => assert.doesNotMatch(refused(text), /taken/));
  }

  for (const text of [
    '',
    ' ',
    '{',
    '[',
    '[1',
    '[1,]',
    '{"a"}',
    '{"a":1,}',
    '{a:1}',
    "{'a':1}",
    'tru',
    '1 2',
    '[] x',
    '//',
    'NaN',
  ]) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.doesNotMatch(refused(text), /taken/));
  }

  it('refuses a BOM, UTF-16 and invalid UTF-8', () => {
    assert.doesNotMatch(refused('\ufeff{}'), /taken/);
    assert.doesNotMatch(refused(Buffer.from('{}', 'utf16le')), /taken/);
    assert.equal(refused(Buffer.from([0x22, 0xff, 0x22])), 'not UTF-8');
    assert.equal(refused(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), 'not UTF-8');
  });

  it('limits the depth, and accepts exactly the bound', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    assert.equal(parse(nested(65)).kind, 'value');
    assert.match(refused(nested(66)), /deep/);
    assert.match(refused('{"a":'.repeat(100_000)), /deep/);
    assert.equal(parseStrictJson(Buffer.from('[[]]'), { maxDepth: 0 }).kind, 'refused');
  });

  it('limits the number of objects and arrays, and accepts exactly the bound', () => {
    const list = (count: number): string => `[${'{},'.repeat(count - 1)}{}]`.padEnd(16_000);
    assert.equal(parse(list(1999)).kind, 'value');
    assert.match(refused(list(2000)), /too many objects/);
  });

  it('limits the number of members, and accepts exactly the bound', () => {
    const member = (index: number): string => `"${index.toString(36).padStart(3, '0')}":1`;
    const object = (count: number): string =>
      `{${Array.from({ length: count }, (_, index) => member(index)).join(',')}}`;
    assert.equal(parse(object(5000)).kind, 'value');
    const beyond = parse(object(5001));
    assert.equal(beyond.kind === 'refused' && beyond.reason, 'too many members');
  });

  it('returns the position of the error', () => {
    const result = parse('{"a": 1, "b": x}');
    assert.ok(result.kind === 'refused');
    assert.equal(result.offset, 14);
  });
});
