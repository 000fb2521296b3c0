import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfig } from '../../src/agent/config/load-config.js';

const examples = 'docs/examples';

describe('the sample configurations', () => {
  for (const { name } of readdirSync(examples, { withFileTypes: true }).filter((one) => one.isDirectory())) {
    it(`are ones the agent accepts without a warning: ${name}`, () => {
      const { config, warnings } = loadConfig(join(examples, name, 'agent.yaml'));
      assert.deepEqual(warnings, []);
      assert.equal(config.workers[0]?.uses[0], config.bundles[0]?.name);
    });
  }
});
