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
/** The values of an instruction in a stage and in those it is made from, the nearest last. */
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

      it('has the packages of the fleet server when it is one, and no other time', () => {
        const installs = values(name, 'RUN').filter((line) => line.includes('npm ci'));
        const whole = installs.filter((line) => !line.includes('--omit=optional'));
        assert.equal(whole.length, name === 'fleet' ? 1 : 0);
        assert.ok(installs.every((line) => line.includes('--omit=dev') && line.includes('--ignore-scripts')));
      });
    });
  }

  it('puts bubblewrap into the image of the agent, and asks the fleet server as it asks the repository server', () => {
    assert.ok(values('agent', 'RUN').some((line) => /apt-get install .*\bbubblewrap\b/.test(line)));
    assert.deepEqual(healthCommand('fleet'), healthCommand('server'));
  });

  it('gives nothing to copy that is not there, or that .dockerignore keeps out', () => {
    const ignore = readFileSync(join(project, '.dockerignore'), 'utf8').split('\n');
    const allowed = ignore.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
    assert.ok(ignore.includes('*'));
    for (const { lines } of stages) {
      for (const line of lines.filter((one) => one.startsWith('COPY '))) {
        const words = line.split(/\s+/).slice(1);
        const from = words.find((word) => word.startsWith('--from='));
        if (from !== undefined) {
          stage(from.slice('--from='.length));
          continue;
        }
        for (const source of words.slice(0, -1).map((word) => word.replace(/\/$/, ''))) {
          assert.ok(existsSync(join(project, source)), source);
          assert.ok(allowed.includes(source), `${source} is not in .dockerignore's list`);
        }
      }
    }
  });

  it('lets nothing but sources into the build', () => {
    const allowed = ['package.json', 'package-lock.json', 'tsconfig.json', 'scripts', 'src'];
    const ignore = readFileSync(join(project, '.dockerignore'), 'utf8');
    const lines = ignore.split('\n').filter((line) => line.startsWith('!'));
    assert.deepEqual(lines.sort(), allowed.map((name) => `!${name}`).sort());
  });

  it('installs what runs without the scripts and tools of development', () => {
    const install = values('runtime', 'RUN').find((line) => line.includes('npm ci')) ?? '';
    assert.match(install, /--omit=dev/);
    assert.match(install, /--ignore-scripts/);
    assert.ok(stages.every(({ base }) => base === 'runtime' || /^node:\d+-slim$/.test(base)));
  });

  it('asks the server for its health as the server answers it', async () => {
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
