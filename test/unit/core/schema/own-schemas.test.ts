import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fleetSchemas } from '../../../../src/agent/fleet/fleet-files.js';
import { installIdSchema } from '../../../../src/agent/identity/install-id.js';
import { ledgerSchema } from '../../../../src/agent/state/ledger-schema.js';
import { refusalsSchema } from '../../../../src/agent/state/refusals-file.js';
import { configSchema, driverSchemaOf } from '../../../../src/core/config/config-schema.js';
import { validators } from '../../../../src/core/schema/compiled-schemas.js';
import { everyMistake, schemaKey, validatorOf } from '../../../../src/core/schema/own-schemas.js';
import { driverKinds } from '../../../../src/workers/registry.js';

const state = [ledgerSchema, refusalsSchema, installIdSchema, ...fleetSchemas];
const ours = [configSchema, ...driverKinds.map(driverSchemaOf), ...state];
const other = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };

describe('a schema of Writ', () => {
  it('has a unique validator that the build compiled', () => {
    const keys = ours.map(schemaKey);
    assert.deepEqual(
      keys.filter((key) => validators[key] === undefined),
      [],
    );
    assert.deepEqual([...Object.keys(validators)].sort(), [...new Set(keys)].sort());
    for (const schema of ours) assert.equal(validatorOf(schema), validators[schemaKey(schema)]);
  });

  it('is checked even if the build did not compile it', () => {
    assert.equal(validators[schemaKey(other)], undefined);
    assert.deepEqual([validatorOf(other)({ a: 1 }), validatorOf(other)({ a: 'x' })], [true, false]);
    const changed = { ...configSchema, required: ['repository', 'bundles', 'host'] };
    const file = { repository: 'http://a.example/', bundles: [{ name: 'a' }] };
    assert.deepEqual([validatorOf(configSchema)(file), validatorOf(changed)(file)], [true, false]);
  });

  it('has the same verdict of the quick validator and of the one that lists all errors', () => {
    const files: readonly unknown[] = [
      null,
      [],
      {},
      { repository: 'http://a.example/', bundles: [{ name: 'a' }] },
      { repository: 'http://a.example/', bundles: [] },
      { repository: 'http://a.example/', bundles: [{ name: 'a', serail: 1 }], scrub: { every: 'never' } },
      { repository: 'http://a.example/', bundles: [{ name: 'a' }], poll: { every: '5 minutes' } },
    ];
    for (const file of files) {
      for (const schema of ours) {
        assert.equal(validatorOf(schema)(file), everyMistake(schema, file).length === 0);
      }
    }
  });

  it('lists all errors, with their messages and the violated schema', () => {
    const found = everyMistake(other, { a: 'x' });
    assert.deepEqual(
      found.map(({ instancePath, keyword, message }) => [instancePath, keyword, message]),
      [['/a', 'type', 'must be integer']],
    );
    assert.deepEqual(found[0]?.parentSchema, { type: 'integer' });
    assert.deepEqual(everyMistake(other, { a: 1 }), []);
  });
});
