import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { truncatedFinding, unnamedFinding } from '../../../../src/agent/fleet/fit-report.js';
import { codeText, nearCodes } from '../../../../src/cli/console/help-code.js';
import { type ErrorCode, errorCodes } from '../../../../src/core/error-codes.js';
import { errorPage } from '../../../../src/core/error-docs.js';

const all = Object.keys(errorCodes) as ErrorCode[];

describe('the help on a code', () => {
  it('has the whole page, in lines of a terminal', () => {
    for (const code of all) {
      const text = codeText(code) ?? '';
      const flatText = text.replace(/\s+/g, ' ');
      const { meaning, kind, exit, effect, hint } = errorPage(code);
      assert.ok(text.startsWith(`${code}\n`), code);
      for (const part of [meaning, `Kind ${kind}, ${exit}`, `Policy ${effect}`, `What to do ${hint}`])
        assert.ok(flatText.includes(part), `${code}: ${part}`);
      const long = text.split('\n').filter((line) => line.length > 80 && line.trim().includes(' '));
      assert.deepEqual(long, []);
    }
  });

  it('explains each code of status, health, /healthz and a fleet that is not an error', () => {
    const places = [
      ['src/core/status/host-health.ts', /type HostStateCode =([^;]*);/, 'STALE'],
      ['src/core/status/host-health.ts', /type ServerStateCode =([^;]*);/, 'PUBLISH_PENDING'],
      ['src/core/fleet/answers.ts', /interface FleetFinding \{[^}]*?readonly code:([^;]*);/, 'ROLE_ENDS'],
    ] as const;
    const states = places.flatMap(([path, pattern, known]) => {
      const [, list = ''] = pattern.exec(fs.readFileSync(path, 'utf8')) ?? [];
      const codes = [...list.matchAll(/'([A-Z_]+)'/g)].map(([, code = '']) => code);
      assert.ok(codes.includes(known), path);
      return codes;
    });
    for (const code of [...states, truncatedFinding, unnamedFinding])
      assert.match(codeText(code) ?? '', new RegExp(`^${code}\n\n[^]*\nPolicy [^]*\nWhat to do `), code);
  });

  it('accepts a code in any case, and with hyphens', () => {
    assert.equal(codeText('download_digest'), codeText('DOWNLOAD_DIGEST'));
    assert.equal(codeText('Download-Digest'), codeText('DOWNLOAD_DIGEST'));
    assert.equal(codeText('toString'), undefined);
  });
});

describe('codes similar to the typed one', () => {
  it('differ little, the nearest first', () => {
    assert.equal(nearCodes('download_digst')[0], 'DOWNLOAD_DIGEST');
    assert.equal(nearCodes('LOCK_HOLD')[0], 'LOCK_HELD');
  });

  it('contain the typed part, up to a few', () => {
    assert.deepEqual(
      nearCodes('metadata_m'),
      all.filter((code) => code.includes('METADATA_M')),
    );
    assert.equal(nearCodes('metadata').length, 5);
  });

  it('are empty for a text that is similar to no code, too short, or too long', () => {
    for (const name of ['xyzzyplugh', 'a', '', 'DOWNLOAD_DIGEST'.repeat(1000)])
      assert.deepEqual(nearCodes(name), [], name.slice(0, 20));
  });
});
