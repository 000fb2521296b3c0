// Generated and hostile files of any shape: the parser returns mistakes with their lines and never throws.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { minimal, mistakes, parse } from './parsed-text.js';

describe('a file of any shape', () => {
  const names = [
    'repository',
    'bundles',
    'workers',
    'name',
    'uses',
    'when',
    'checks',
    'run',
    'reset',
    'signal',
    'poll',
  ];
  const shaped = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(null, 'dns-edge', 'a:b', '{bundle}', '5m', -1, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 5 }),
    ),
  })).value;

  it('is accepted or has mistakes with their lines, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(shaped, fc.jsonValue()), (data) => {
        const parsed = parse(JSON.stringify(data, undefined, 1));
        if (parsed.ok) return;
        assert.ok(parsed.mistakes.length > 0);
        for (const { line, column, pointer } of parsed.mistakes) {
          assert.ok(line >= 1 && column >= 1 && (pointer === '' || pointer.startsWith('/')));
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe('a text that is not a configuration', () => {
  for (const [what, text, line] of [
    ['broken YAML', 'repository: [a\nbundles: }', 2],
    ['a key twice', `${minimal}repository: https://b/`, 4],
    ['two documents', `${minimal}---\na: 1`, 4],
    ['a tag', `${minimal}root: !path /a`, 4],
    ['a tab as indentation', 'bundles:\n\t- name: a', 2],
    ['nesting beyond the stack', '['.repeat(100_000), 1],
    ['more than 1 MB', `# ${'x'.repeat(1_000_000)}`, 1],
    [
      'a bomb of aliases',
      `a: &a [x]\nb: &b [${'*a,'.repeat(30)}]\nc: &c [${'*b,'.repeat(30)}]\nd: [${'*c,'.repeat(30)}]`,
      1,
    ],
    ['an unknown alias', 'a: *b', 1],
  ] as const) {
    it(`is refused with its line: ${what}`, () => {
      const parsed = parse(text);
      assert.ok(!parsed.ok);
      assert.deepEqual(
        parsed.mistakes.slice(0, 1).map(({ code, line: at }) => ({ code, line: at })),
        [{ code: 'CONFIG_SYNTAX', line }],
      );
    });
  }

  it('cannot reach prototypes', () => {
    assert.deepEqual(mistakes(`${minimal}__proto__: { polluted: 1 }`), [
      '4:1 /__proto__: unknown key "__proto__"',
    ]);
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });

  it('has too much content above the limit, and not with 250 bundles', () => {
    const lines = (count: number): string =>
      Array.from({ length: count }, (_, index) => `  label-${index}: x\n`).join('');
    const [only] = mistakes(`${minimal}labels:\n${lines(30_000)}`);
    assert.match(only ?? '', /has too much content/);
    const bundles = Array.from({ length: 250 }, (_, index) => `  - {name: b${index}, channel: stable}\n`);
    assert.deepEqual(mistakes(`${minimal}${bundles.join('')}`), []);
  });

  it('has the line of the value that an alias refers to', () => {
    const found = mistakes(`repository: https://a/\nbundles:\n  - &b { name: A }\n  - *b`);
    assert.match(found[0] ?? '', /^3:16 \/bundles\/0\/name/);
    assert.equal(found.length, 3);
  });
});
