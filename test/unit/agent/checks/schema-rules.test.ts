import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compilePolicySchema, type SchemaProblem } from '../../../../src/agent/checks/schema-rules.js';

const formats = { even: (text: string): boolean => text.length % 2 === 0 };

function judge(schema: unknown, data: unknown): readonly SchemaProblem[] {
  const compiled = compilePolicySchema(schema, formats);
  assert.equal(compiled.kind, 'schema', JSON.stringify(compiled));
  return compiled.kind === 'schema' ? compiled.judge(data) : [];
}

function assertUnusable(schema: unknown): void {
  assert.equal(compilePolicySchema(schema, formats).kind, 'unusable');
}

describe('compilePolicySchema', () => {
  const schema = {
    properties: { allow: { type: 'array', items: { type: 'string' } }, mode: { enum: ['on', 'off'] } },
    required: ['allow'],
    additionalProperties: false,
  };

  it('accepts data that match', () => {
    assert.deepEqual(judge(schema, { allow: ['a'], mode: 'on' }), []);
  });

  it('reports every position that does not match', () => {
    const problems = judge(schema, { allow: ['a', 1, 2], mode: 'x', extra: 1 });
    assert.deepEqual(problems.map(({ pointer }) => pointer).sort(), ['', '/allow/1', '/allow/2', '/mode']);
    assert.ok(problems.some(({ text }) => text.includes('"extra"')));
    assert.ok(problems.some(({ text }) => text.includes('"off"')));
  });

  it('uses draft 2020-12 by default and draft 7 by its name', () => {
    const tuple = { prefixItems: [{ type: 'number' }], items: false };
    assert.equal(judge(tuple, ['x']).length, 1);
    const old = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      items: [{ type: 'number' }],
      additionalItems: false,
    };
    assert.equal(judge(old, ['x']).length, 1);
    assert.equal(judge(old, [1, 2]).length, 1);
  });

  it('uses the given formats', () => {
    assert.equal(judge({ type: 'string', format: 'even' }, 'odd').length, 1);
    assertUnusable({ type: 'string', format: 'uneven' });
  });

  it('accepts a schema that is true or false', () => {
    assert.equal(judge(true, 1).length, 0);
    assert.equal(judge(false, 1).length, 1);
  });

  it('rejects an invalid schema, an unknown keyword, and an external reference', () => {
    for (const wrong of [null, 1, 'x', [], { type: 'strnig' }, { requierd: ['a'] }]) assertUnusable(wrong);
    assertUnusable({ $ref: 'https://example.net/schema.json' });
    assertUnusable({ pattern: '(' });
  });
});
