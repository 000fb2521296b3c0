// Whoever sends sixteen times as much may cost sixteen times the time, and not 256 times: every parser of what comes from
// outside against the shapes that are known to be dear.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LineCounter } from 'yaml';
import { readPolicyDocument } from '../../../../src/agent/checks/document-rules.js';
import { orUndefined } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { createLineReader } from '../../../../src/core/protocol/socket-protocol.js';
import { createPathSet } from '../../../../src/core/release/entry-rules.js';
import { parseManifest } from '../../../../src/core/release/manifest.js';
import { parseReleaseInfo } from '../../../../src/core/release/release.js';
import { createTarReader } from '../../../../src/core/release/tar-reader.js';
import { countLineChanges } from '../../../../src/core/text/line-count.js';
import { parseStrictJson } from '../../../../src/core/text/strict-json.js';
import { yamlData } from '../../../../src/core/text/yaml-data.js';
import { parseYaml } from '../../../../src/core/text/yaml-parse.js';
import { searchTarget } from '../../../../src/core/tuf/target-search.js';
import { parseEnvelope } from '../../../../src/core/tuf/tuf-metadata.js';
import { assertNoSquare } from '../../../kit/assert/growth.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fileEntry } from '../../../kit/repository/archive-builder.js';
import { row } from '../../../kit/repository/manifest-bombs.js';
import { minimal, parse as parseConfig } from '../config/parsed-text.js';

interface Case {
  /** Builds an input with so many parts. */
  readonly of: (count: number) => string;
  readonly read: (text: string) => unknown;
  /** Parts of an input that takes some milliseconds. */
  readonly count: number;
}

const list = (count: number, of: (index: number) => string, between = ''): string =>
  Array.from({ length: count }, (_, index) => of(index)).join(between);

function yaml(text: string): void {
  const parsed = parseYaml(text, new LineCounter(), { maxPieces: 10_000_000 });
  if (parsed.kind === 'document') yamlData(parsed.document);
}
const policy = (format: 'yaml' | 'json') => (text: string) => {
  const read = readPolicyDocument(Buffer.from(text), format, 20);
  if (read.kind === 'data') read.locate(Array.from({ length: 20 }, (_, index) => `/k${index}/x`));
};
const strict = (text: string) => parseStrictJson(Buffer.from(text));
const manifest = (text: string) => parseManifest(Buffer.from(text), defaultArchiveLimits);
const targets = (inner: string): string =>
  `{"signatures":[],"signed":{"_type":"targets","spec_version":"1.0.34","version":1,"expires":"2036-01-01T00:00:00Z","targets":{},"x":${inner}}}`;
const roleText = (index: number, paths: string): string =>
  `{"name":"${padded(index)}","keyids":[],"threshold":1,"paths":[${paths}]}`;
const delegating = (roles: string): string =>
  targets('1').replace('"x":1', `"delegations":{"keys":{},"roles":[${roles}]}`);
const searched = (text: string) =>
  searchTarget(parseEnvelope(Buffer.from(text), 'targets'), `a/${'b'.repeat(60)}`).next();
const rows = (count: number, path: (index: number) => string): string =>
  `{"files":[${list(count, (index) => row(path(index)), ',')}],"writ":1}`;
const padded = (index: number): string => String(index).padStart(6, '0');

const cases: Readonly<Record<string, Case>> = {
  'YAML: keys of a map': { count: 3000, of: (n) => list(n, (i) => `k${i}: 1\n`), read: yaml },
  'YAML: keys of a map in braces': {
    count: 3000,
    of: (n) => `{${list(n, (i) => `k${i}: 1`, ',')}}`,
    read: yaml,
  },
  'YAML: a key again and again': { count: 3000, of: (n) => 'k: 1\n'.repeat(n), read: yaml },
  'YAML: items': { count: 5000, of: (n) => '- 1\n'.repeat(n), read: yaml },
  'YAML: items in brackets': { count: 5000, of: (n) => `[${'1,'.repeat(n)}]`, read: yaml },
  'YAML: empty maps': { count: 3000, of: (n) => `[${'{},'.repeat(n)}]`, read: yaml },
  'YAML: aliases of one anchor': { count: 5000, of: (n) => `- &a 1\n${'- *a\n'.repeat(n)}`, read: yaml },
  'YAML: an alias for each anchor': {
    count: 3000,
    of: (n) => list(n, (i) => `- &a${i} 1\n- *a${i}\n`),
    read: yaml,
  },
  'YAML: aliases that multiply': {
    count: 10,
    of: (n) => `- &a0 [1]\n${list(n, (i) => `- &a${i + 1} [${`*a${i},`.repeat(9)}]\n`)}`,
    read: yaml,
  },
  'YAML: mistakes': { count: 3000, of: (n) => 'a: b: c\n'.repeat(n), read: yaml },
  'YAML: commas': { count: 4000, of: (n) => `[${','.repeat(n)}]`, read: yaml },
  'YAML: comments': { count: 10_000, of: (n) => `a:\n${'# c\n'.repeat(n)}  b: 1\n`, read: yaml },
  'YAML: lines of a text': { count: 20_000, of: (n) => `a: x\n${'  y\n'.repeat(n)}`, read: yaml },
  'YAML: lines of a text in quotes': {
    count: 20_000,
    of: (n) => `a: "x\n${'  y\n'.repeat(n)}  "\n`,
    read: yaml,
  },
  'YAML: lines of a block': { count: 20_000, of: (n) => `a: |\n${'  y\n'.repeat(n)}`, read: yaml },
  'YAML: documents': { count: 2000, of: (n) => '--- 1\n...\n'.repeat(n), read: yaml },
  'a policy in YAML: keys': { count: 3000, of: (n) => list(n, (i) => `k${i}: 1\n`), read: policy('yaml') },
  'a policy in JSON: members': {
    count: 20_000,
    of: (n) => `{${list(n, (i) => `"k${i}":1`, ',')}}`,
    read: policy('json'),
  },
  'a policy in JSON: a member again and again': {
    count: 20_000,
    of: (n) => `{${list(n, () => '"k":1', ',')}}`,
    read: policy('json'),
  },
  'a configuration: labels': {
    count: 2000,
    of: (n) => `${minimal}labels:\n${list(n, (i) => `  k${i}: v\n`)}`,
    read: parseConfig,
  },
  'a configuration: unknown keys': {
    count: 1000,
    of: (n) => minimal + list(n, (i) => `k${i}: v\n`),
    read: parseConfig,
  },
  'strict JSON: members': {
    count: 20_000,
    of: (n) => `{${list(n, (i) => `"key${i}":1`, ',')}}`,
    read: strict,
  },
  'strict JSON: objects': { count: 20_000, of: (n) => `[${'{},               '.repeat(n)}1]`, read: strict },
  'strict JSON: escapes': { count: 100_000, of: (n) => `["${'\\n'.repeat(n)}"]`, read: strict },
  'strict JSON: strings': { count: 40_000, of: (n) => `[${'"\\n",'.repeat(n)}1]`, read: strict },
  'metadata: members': {
    count: 10_000,
    of: (n) => targets(`{${list(n, (i) => `"key${i}":1`, ',')}}`),
    read: (text) => parseEnvelope(Buffer.from(text), 'targets'),
  },
  'metadata: signatures': {
    count: 5000,
    of: (n) =>
      targets('1').replace('[]', `[${list(n, (i) => `{"keyid":"${padded(i)}","sig":"00000000"}`, ',')}]`),
    read: (text) => parseEnvelope(Buffer.from(text), 'targets'),
  },
  'metadata: roles': {
    count: 1000,
    of: (n) => delegating(list(n, (i) => roleText(i, '"a/*"'), ',')),
    read: searched,
  },
  'metadata: patterns of a role': {
    count: 4000,
    of: (n) =>
      delegating(
        roleText(
          0,
          list(n, (i) => `"a/*b*${i}"`, ','),
        ),
      ),
    read: searched,
  },
  'metadata: one long pattern': {
    count: 100_000,
    of: (n) => delegating(roleText(0, `"a/${'*b'.repeat(n)}"`)),
    read: searched,
  },
  'a release: withdrawn serials': {
    count: 10_000,
    of: (n) => list(n, (i) => String(i + 1), ','),
    read: (text) => parseReleaseInfo({ writ: { withdrawn: text.split(',').map(Number) } }, 'a'),
  },
  'a manifest: rows': { count: 3000, of: (n) => rows(n, padded), read: manifest },
  'a manifest: directories': {
    count: 1000,
    of: (n) => rows(n, (i) => `${padded(i)}/a/b/c/d`),
    read: manifest,
  },
  'a manifest: what is none': {
    count: 500_000,
    of: (n) => `{"files":[${'{},'.repeat(n)}{}],"writ":1}`,
    read: manifest,
  },
  'a manifest: a path without end': {
    count: 500_000,
    of: (n) => `{"files":[{"executable":false,"path":"${'a\\"'.repeat(n)}`,
    read: manifest,
  },
  'a tar: entries': {
    count: 2000,
    of: (n) => list(n, (i) => fileEntry({ path: `f${i}`, content: 'x' }).toString('latin1')),
    read: (text) =>
      createTarReader(
        { begin: () => undefined, data: () => undefined, end: () => undefined },
        { maxPaxBytes: 2000 },
      ).write(Buffer.from(text, 'latin1')),
  },
  'paths of a tree': {
    count: 3000,
    of: (n) => list(n, (i) => `a/b${i % 50}/c${i}`, '\n'),
    read: (text) => {
      const set = createPathSet(defaultArchiveLimits);
      for (const path of text.split('\n')) set.add(path);
    },
  },
  'lines of two texts with nothing in common': {
    count: 20_000,
    of: (n) => list(n, (i) => `${padded(i)}\n`),
    read: (text) => countLineChanges(Buffer.from(text), Buffer.from(text.replaceAll('\n', 'x\n'))),
  },
  'lines of two texts that are all the same line': {
    count: 50_000,
    of: (n) => '\n'.repeat(n),
    read: (text) => countLineChanges(Buffer.from(text), Buffer.from(text)),
  },
  'lines of a socket': {
    count: 5000,
    of: (n) => '{"type":"status"}\n'.repeat(n),
    read: (text) => createLineReader().push(Buffer.from(text)),
  },
};

describe('sixteen times the input', () => {
  for (const [name, { of, read, count }] of Object.entries(cases)) {
    it(`of ${name} takes no square of the time`, () => {
      assertNoSquare(count, (parts) => {
        const text = of(parts);
        return () => orUndefined(() => read(text));
      });
    });
  }

  it('detects quadratic work', longCase, () => {
    // As long as the square of its parts says, by the clock that is read.
    const cpuMs = (): number => Object.values(process.cpuUsage()).reduce((sum, us) => sum + us, 0) / 1000;
    const spend = (ms: number): void => {
      const endMs = cpuMs() + ms;
      while (cpuMs() < endMs);
    };
    assert.throws(() => assertNoSquare(4, (parts) => () => spend(parts ** 2)), { code: 'ERR_ASSERTION' });
    assertNoSquare(4, (parts) => () => spend(parts));
  });
});
