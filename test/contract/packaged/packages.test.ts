// The requirements of an install: the promised Node and no newer one, no script of a package, and the packages of the fleet
// server only on request.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fleetPackages } from '../../../src/core/errors.js';
import { projectRoot } from '../../kit/sources/source-files.js';

interface Locked {
  readonly dev?: boolean;
  readonly engines?: { readonly node?: string };
  readonly hasInstallScript?: boolean;
}

const read = (name: string) => JSON.parse(readFileSync(join(projectRoot, name), 'utf8')) as unknown;
const { engines, optionalDependencies } = read('package.json') as {
  readonly engines: { readonly node: string };
  readonly optionalDependencies: Readonly<Record<string, string>>;
};
const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, Locked>> };
const shipped = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);

const parts = (version: string): readonly number[] =>
  [0, 1, 2].map((at) => Number(version.split('.')[at]?.replace('x', '0') ?? 0));

function isAtLeast(version: string, least: string): boolean {
  const [ours, theirs] = [parts(version), parts(least)];
  const at = [0, 1, 2].find((index) => ours[index] !== theirs[index]);
  return at === undefined || (ours[at] ?? 0) > (theirs[at] ?? 0);
}

/** True when a range of npm includes the version; false for a kind of range that packages do not use. */
function holds(range: string, version: string): boolean {
  return range.split('||').some((choice) =>
    (choice.replaceAll(/([<>=^~]) +/g, '$1').match(/\S+/g) ?? []).every((one) => {
      const [, sign, least = ''] = /^(>=|\^|~|)(\d[\d.x]*)$/.exec(one) ?? [];
      if (sign === undefined) return false;
      const isSameMajor = parts(least)[0] === parts(version)[0];
      return isAtLeast(version, least) && (sign === '>=' || isSameMajor);
    }),
  );
}

describe('the packages of an install', () => {
  it('need no newer Node than Writ promises', () => {
    const promised = engines.node.replace('>=', '');
    assert.equal(promised, '20.19');
    const refused = shipped.filter(([, { engines }]) => engines?.node && !holds(engines.node, promised));
    assert.deepEqual(
      refused.map(([path, { engines }]) => `${path} ${engines?.node}`),
      [],
    );
  });

  it('are judged by ranges that are parsed as npm parses them', () => {
    for (const range of ['>=22', '>= 20.20', '^22.9.0', '>=22.9.0 || ^18', '22.x', '>18'])
      assert.equal(holds(range, '20.19'), false, range);
    for (const range of [
      '>=20',
      '>= 10.x',
      '^20.17.0 || >=22.9.0',
      '^16 || ^18 || >=20',
      '>=16 || 14 >=14.17',
    ])
      assert.equal(holds(range, '20.19'), true, range);
  });

  it('have optional packages of the fleet server, and a command that names them', () => {
    // fastify depends on light-my-request. Only a direct dependency can be pinned to the last version that runs without Node 22.
    const pinned = 'light-my-request';
    assert.deepEqual(Object.keys(optionalDependencies).sort(), [...fleetPackages, pinned].sort());
    assert.match(optionalDependencies[pinned] ?? '', /^\d/);
  });

  it('run no install script', () => {
    assert.deepEqual(
      shipped.filter(([, { hasInstallScript }]) => hasInstallScript === true).map(([path]) => path),
      [],
    );
  });
});
