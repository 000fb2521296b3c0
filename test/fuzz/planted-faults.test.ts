// Tests that the fuzzer finds faults: each target gets a reader with one planted fault, and finds it within its bound. With
// the real reader the same inputs show no fault.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../src/core/limits.js';
import { parseControlRequest } from '../../src/core/protocol/control-protocol.js';
import { parseWorkerMessage } from '../../src/core/protocol/native-protocol.js';
import { type Manifest, parseManifest } from '../../src/core/release/manifest.js';
import { parseEnvelope } from '../../src/core/tuf/tuf-metadata.js';
import { createKresdReader } from '../../src/workers/protocols/kresd-protocol.js';
import { parseXmlRpcAnswer } from '../../src/workers/protocols/xml-rpc.js';
import { longCase } from '../kit/assert/long-case.js';
import { parse as parseConfigText } from '../unit/core/config/parsed-text.js';
import { measureCoverage } from './engine/coverage.js';
import { fuzzTarget } from './engine/fuzz-target.js';
import { steps } from './engine/stairs.js';
import type { Target } from './engine/target.js';
import { manifestTarget, readTar, tarTarget } from './targets/archive-targets.js';
import { deltaTarget, readDelta } from './targets/delta-target.js';
import { httpAnswersTarget, httpRequestsTarget } from './targets/http-targets.js';
import { carelessDownload, rangeAnswersTarget } from './targets/range-target.js';
import { controlTarget, kresdTarget, nativeTarget } from './targets/socket-targets.js';
import { targets } from './targets/targets.js';
import { configTarget, metadataTarget, xmlRpcTarget } from './targets/text-targets.js';

interface Planted {
  /** The fault of the broken reader. */
  readonly fault: string;
  readonly maxRuns: number;
  readonly broken: () => Target | Promise<Target>;
}

const planted: Readonly<Record<string, Planted>> = {
  tar: {
    fault: 'loses what comes last where a program is longer than a block',
    maxRuns: 4000,
    broken: () =>
      tarTarget((pieces) => {
        const list = [...pieces];
        const files = readTar(list);
        const isLost =
          list.length > 1 && files.some(({ mode, sizeBytes }) => mode === 0o755 && sizeBytes > 512);
        return isLost ? files.slice(1) : files;
      }),
  },
  manifest: {
    fault: 'takes what is not in canonical form',
    maxRuns: 4000,
    broken: () =>
      manifestTarget((bytes) => {
        try {
          return parseManifest(bytes, defaultArchiveLimits);
        } catch (error) {
          if (!String(error).includes('canonical')) throw error;
          return { files: [] } satisfies Manifest;
        }
      }),
  },
  delta: {
    fault: 'stumbles over a copy that ends behind its base',
    maxRuns: 4000,
    broken: () =>
      deltaTarget((delta, sizes) => {
        try {
          return readDelta(delta, sizes);
        } catch (error) {
          if (String(error).includes('outside of the base')) throw new TypeError('planted');
          throw error;
        }
      }),
  },
  'tuf-metadata': {
    fault: 'stumbles over a target that carries nothing of ours',
    maxRuns: 8000,
    broken: () =>
      metadataTarget((bytes, role, name) => {
        const file = parseEnvelope(bytes, role, name);
        const { targets: listed = {} } = file.signed as { targets?: Record<string, { custom?: unknown }> };
        if (Object.values(listed).some(({ custom }) => custom === undefined)) throw new TypeError('planted');
        return file;
      }),
  },
  configuration: {
    fault: 'stumbles over a mistake deep in the file',
    maxRuns: 1000,
    broken: () =>
      configTarget((text) => {
        const parsed = parseConfigText(text);
        const isDeep = !parsed.ok && parsed.mistakes.some(({ pointer }) => pointer.split('/').length > 4);
        if (isDeep) throw new TypeError('planted');
        return parsed;
      }),
  },
  'control-socket': {
    fault: 'takes a number of the other side for one of its own',
    maxRuns: 4000,
    broken: () =>
      controlTarget((message) => {
        const request = parseControlRequest({ ...message, limit: 1 });
        return request.type === 'history' ? { ...request, limit: message['limit'] as number } : request;
      }),
  },
  'native-protocol': {
    fault: 'takes any number for one that counts',
    maxRuns: 4000,
    broken: () =>
      nativeTarget((message) => {
        const parsed = parseWorkerMessage({ ...message, pid: 1 });
        return parsed.type === 'hello' ? { ...parsed, pid: message['pid'] as number } : parsed;
      }),
  },
  kresd: {
    fault: 'searches the prompt in the first piece only',
    maxRuns: 200,
    broken: () =>
      kresdTarget(() => {
        const push = createKresdReader();
        let isFirst = true;
        return (chunk) => {
          const shown = isFirst && chunk.length === 1 ? Buffer.from('x') : chunk;
          isFirst = false;
          return push(shown);
        };
      }),
  },
  'xml-rpc': {
    fault: 'stumbles over an empty list inside another',
    maxRuns: 1000,
    broken: () =>
      xmlRpcTarget((text) => {
        const answer = parseXmlRpcAnswer(text);
        const { value } = answer as { value?: unknown };
        const isEmpty = (one: unknown): boolean => Array.isArray(one) && one.length === 0;
        if (Array.isArray(value) && value.some(isEmpty)) throw new TypeError('planted');
        return answer;
      }),
  },
  'http-answers': {
    fault: 'takes twice as many bytes as it may',
    maxRuns: 600,
    broken: () =>
      httpAnswersTarget((source, bytes) => source.fetch('metadata/timestamp.json', { maxBytes: bytes * 2 })),
  },
  'range-answers': {
    fault: 'takes whatever comes with status 206 for the range that was asked for',
    maxRuns: 600,
    broken: () => rangeAnswersTarget(carelessDownload),
  },
  'http-requests': {
    fault: 'joins what was asked to its directory',
    maxRuns: 600,
    broken: () => httpRequestsTarget(careless),
  },
};

/** A server with typical faults of a first version. */
async function careless(repository: string): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    try {
      response.end(readFileSync(join(repository, decodeURIComponent(request.url ?? ''))));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const freshCoverage = measureCoverage((url) => /\/dist\/src\/|\/stairs\.js$/.test(url));

async function play(target: Target, maxRuns: number) {
  try {
    return await fuzzTarget(target, { seed: 5, bound: { maxRuns }, coverage: freshCoverage() });
  } finally {
    await target.close?.();
  }
}

describe('a planted fault', longCase, () => {
  it('is there for each target', () => {
    assert.deepEqual(Object.keys(planted), Object.keys(targets));
  });

  for (const [name, { fault, maxRuns, broken }] of Object.entries(planted)) {
    it(`is found by ${name} in a reader that ${fault}`, async () => {
      const found = await play(await broken(), maxRuns);
      assert.ok(found.fault !== undefined, `not within ${found.runs} inputs`);
      const real = await targets[name]?.();
      await real?.check(found.fault.input);
      await real?.close?.();
    });
  }
});

describe('coverage', longCase, () => {
  it('leads to what no change of a seed alone would reach, one step after the other', async () => {
    const target: Target = { name: 'stairs', seeds: [Buffer.from('.......')], tokens: ['.'], check: steps };
    const options = { seed: 1, bound: { maxRuns: 40_000 } };
    const led = await fuzzTarget(target, { ...options, coverage: freshCoverage() });
    assert.equal(String(led.fault?.error), 'Error: at the top');
    assert.equal((await fuzzTarget(target, options)).fault, undefined);
  });
});
