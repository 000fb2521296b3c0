import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Option } from 'commander';
import type { CommandDefinition } from '../../../../src/cli/console/command.js';
import { commonFlags } from '../../../../src/cli/console/flags.js';

const folder = join(import.meta.dirname, '../../../../src/cli/commands');
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.js'),
);

describe('the flags of a command', () => {
  for (const file of files) {
    it(`have the names that commander gives their values: ${file}`, async () => {
      const { command } = (await import(join(folder, file))) as { command: CommandDefinition };
      const table: Readonly<Record<string, Option>> = { ...command.flags, ...commonFlags };
      assert.deepEqual(
        Object.keys(table),
        Object.values(table).map((option) => option.attributeName()),
      );
    });
  }
});
