import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../src/platform/process/run-command.js';
import { startServer } from '../../src/server/server.js';
import { tempDir } from '../kit/disk/temp-dir.js';
import { writeRepository } from '../kit/repository/unsigned-repository.js';

const project = join(import.meta.dirname, '..', '..', '..');

interface Stage {
  readonly name: string;
  readonly base: string;
  /** Instructions in order, continued lines joined. */
  readonly lines: readonly string[];
}

function readStages(): Stage[] {
  const text = readFileSync(join(project, 'Dockerfile'), 'utf8');
  const lines = text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '');
  const stages: { name: string; base: string; lines: string[] }[] = [];
  for (const line of lines) {
    const from = /^FROM (\S+) AS (\S+)$/.exec(line);
    if (from) stages.push({ base: from[1] ?? '', name: from[2] ?? '', lines: [] });
    else stages.at(-1)?.lines.push(line);
  }
  return stages;
}

const stages = readStages();
const stage = (name: string): Stage => {
  const found = stages.find((one) => one.name === name);
  assert.ok(found, `no stage ${name}`);
  return found;
};
/** The values of an instruction in a stage and in its base stages, the nearest last. */
const values = (name: string, instruction: string): string[] => {
  const { base, lines } = stage(name);
  const inherited = stages.some((one) => one.name === base) ? values(base, instruction) : [];
  const own = lines.filter((line) => line.startsWith(`${instruction} `));
  return [...inherited, ...own.map((line) => line.slice(instruction.length + 1))];
};
const healthCommand = (name: string): string[] => {
  const [, json = '[]'] = /^.*? CMD (\[.*\])$/.exec(values(name, 'HEALTHCHECK').at(-1) ?? '') ?? [];
  return JSON.parse(json) as string[];
};

describe('Dockerfile', () => {
  for (const name of ['agent', 'fleet', 'server']) {
    describe(`target ${name}`, () => {
      it('runs as a user who is not root, by number', () => {
        assert.match(values(name, 'USER').at(-1) ?? '', /^[1-9]\d+:[1-9]\d+$/);
      });

      it('starts the program that the package names, with a command of its own', () => {
        const { bin } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
          readonly bin: { readonly writ: string };
        };
        const workdir = values(name, 'WORKDIR').at(-1) ?? '';
        assert.deepEqual(JSON.parse(values(name, 'ENTRYPOINT').at(-1) ?? ''), [
          'node',
          join(workdir, bin.writ),
        ]);
        const [command] = JSON.parse(values(name, 'CMD').at(-1) ?? '') as string[];
        assert.equal(command, name === 'server' ? 'serve' : name);
        assert.ok(existsSync(join(project, 'src/cli/main.ts')));
      });

      it('has a health check', () => {
        assert.equal(healthCommand(name)[0], 'node');
      });

      it('has the packages of the fleet server only if it is a fleet server', () => {
        const installs = values(name, 'RUN').filter((line) => line.includes('npm ci'));
        const whole = installs.filter((line) => !line.includes('--omit=optional'));
        assert.equal(whole.length, name === 'fleet' ? 1 : 0);
        assert.ok(installs.every((line) => line.includes('--omit=dev') && line.includes('--ignore-scripts')));
      });
    });
  }

  it('installs bubblewrap for the agent, and has the same health check for both servers', () => {
    assert.ok(values('agent', 'RUN').some((line) => /apt-get install .*\bbubblewrap\b/.test(line)));
    assert.deepEqual(healthCommand('fleet'), healthCommand('server'));
  });

  it('copies only paths that exist and that .dockerignore permits', () => {
    const ignore = readFileSync(join(project, '.dockerignore'), 'utf8').split('\n');
    const allowed = ignore.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
    assert.ok(ignore.includes('*'));
    for (const { lines } of stages) {
      for (const line of lines.filter((one) => one.startsWith('COPY '))) {
        const parts = line.split(/\s+/).slice(1);
        const from = parts.find((part) => part.startsWith('--from='));
        if (from !== undefined) {
          stage(from.slice('--from='.length));
          continue;
        }
        for (const source of parts.slice(0, -1).map((part) => part.replace(/\/$/, ''))) {
          assert.ok(existsSync(join(project, source)), source);
          assert.ok(allowed.includes(source), `${source} is not in .dockerignore's list`);
        }
      }
    }
  });

  it('permits only sources in the build', () => {
    const allowed = ['package.json', 'package-lock.json', 'tsconfig.json', 'scripts', 'src'];
    const ignore = readFileSync(join(project, '.dockerignore'), 'utf8');
    const lines = ignore.split('\n').filter((line) => line.startsWith('!'));
    assert.deepEqual(lines.sort(), allowed.map((name) => `!${name}`).sort());
  });

  it('installs without install scripts and development packages', () => {
    const install = values('runtime', 'RUN').find((line) => line.includes('npm ci')) ?? '';
    assert.match(install, /--omit=dev/);
    assert.match(install, /--ignore-scripts/);
    assert.ok(stages.every(({ base }) => base === 'runtime' || /^node:\d+-slim$/.test(base)));
  });

  it('checks the health of the server at the path that the server answers', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const [, ...args] = healthCommand('server');
    const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0 });
    const check = (url: string): ReturnType<typeof runCommand> =>
      runCommand({
        argv: [process.execPath, ...args],
        env: { WRIT_HEALTH_URL: url },
        timeoutMs: 60_000,
        maxOutputBytes: 1000,
      });
    const exitCode = async (url: string): Promise<unknown> => {
      const result = await check(url);
      return result.kind === 'exited' ? result.exitCode : result.kind;
    };
    assert.equal(await exitCode(`${server.url}/healthz`), 0);
    assert.equal(await exitCode(`${server.url}/nowhere`), 1);
    await server.close();
    assert.equal(await exitCode(`${server.url}/healthz`), 1);
  });
});
