// Part one of the demo, with nothing installed: keys, a repository, a server, an agent, two workers; then six
// releases, of which one is tampered with, one fails its check, and one is refused by the workers.
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AccessHost, startAccessHost } from './access-host.js';
import { expectEqual, Unexpected } from './screen.js';
import { project, type Stage } from './stage.js';

/** What part two goes on with. */
export interface Published {
  readonly repositoryUrl: string;
}

const keyFlags = ['--repository', 'repo', '--keys', 'keys'] as const;

/** @throws Unexpected for any answer or exit code that is not as it has to be */
export async function tellAccessStory(stage: Stage): Promise<Published> {
  await makeRepository(stage);
  const { host, repositoryUrl } = await startHost(stage);
  const story: Story = { stage, host };
  await publishSecond(story);
  const generation = await tamper(story);
  await failTheCheck(story, generation);
  await letWorkersRefuse(story, generation);
  await goBack(story);
  await mend(story);
  return { repositoryUrl };
}

interface Story {
  readonly stage: Stage;
  readonly host: AccessHost;
}

async function makeRepository(stage: Stage): Promise<void> {
  stage.screen.step(
    'Keys, a repository, a first policy',
    'The keys get no passphrase here, so that nothing has to be typed. Leave --no-passphrase out for anything',
    'that matters. Publishing checks its own work with the same client that hosts have.',
  );
  await stage.writ(['init', ...keyFlags, '--no-passphrase'], {
    exitCode: 0,
    says: ['CREATED repository repo', 'The key files are not encrypted'],
  });
  for (const bundle of ['access', 'dns-edge']) {
    await publish(stage, { source: join(project, 'bundles', bundle), bundle, revision: 'first', serial: 1 });
  }
}

async function startHost(stage: Stage): Promise<{ host: AccessHost; repositoryUrl: string }> {
  stage.screen.step(
    'A server, an agent, and two workers that ask it for their policy',
    'The server gets the two online keys alone: those that sign what is new never leave the publisher.',
  );
  mkdirSync(stage.path('online'));
  const online = ['snapshot.key', 'timestamp.key'].map((name) => join('keys', name));
  stage.screen.command(['cp', ...online, 'online/']);
  for (const key of online) copyFileSync(stage.path(key), stage.path(key.replace('keys', 'online')));
  const flags = ['--repository', 'repo', '--keys', 'online', '--listen', '127.0.0.1:0'];
  const server = stage.startWrit(['serve', ...flags]);
  const [line, repositoryUrl = ''] = await server.waitFor('stdout', /.*LISTENING (http:\S+)\n/);
  stage.screen.output(line);
  const host = await startAccessHost(stage, repositoryUrl);
  stage.screen.say('\nBob is an editor in the first policy: may he write reports?');
  await host.expectAnswers({ allowed: true, generation: 1 });
  await stage.writ(['status', ...host.configFlags], {
    exitCode: 0,
    says: ['ACTIVE  generation 1 is active', 'worker-1', 'worker-2'],
  });
  return { host, repositoryUrl };
}

async function publishSecond({ stage, host }: Story): Promise<void> {
  stage.screen.step(
    'A second policy',
    'Bob becomes a reader. The workers go on running; only their answers change.',
  );
  cpSync(join(project, 'bundles', 'access'), stage.path('access'), { recursive: true });
  edit(stage, 'bob: [editor]', 'bob: [reader]');
  await publishCopy(stage, { revision: 'second', serial: 2 });
  const generation = await pullActivates({ stage, host }, 'access 2, second');
  expectEqual('the new generation', generation, 2);
  await host.expectAnswers({ allowed: false, generation });
  await stage.writ(['pull', ...host.configFlags], {
    exitCode: 0,
    says: ['UNCHANGED generation 2 is active'],
  });
}

/** @returns the generation that is active in the end */
async function tamper({ stage, host }: Story): Promise<number> {
  stage.screen.step(
    'A tampered one',
    'Bob gets both roles. Then somebody changes one byte of the archive on the server.',
  );
  edit(stage, 'bob: [reader]', 'bob: [editor, reader]');
  const before = archives(stage);
  await publishCopy(stage, { revision: 'third', serial: 3 });
  const archive = archives(stage).find((name) => !before.includes(name));
  if (archive === undefined) throw new Unexpected('writ publish made no new archive');
  const path = stage.path(archive);
  const whole = readFileSync(path);
  stage.screen.say(`\nOne byte of ${archive} is flipped on the server's disk.`);
  writeFileSync(path, flipped(whole));
  await stage.writ(['pull', ...host.configFlags], {
    exitCode: 1,
    says: ['FAILED', '[DOWNLOAD_DIGEST]', 'Generation 2 (access 2) stays active'],
  });
  await host.expectAnswers({ allowed: false, generation: 2 });
  stage.screen.say(
    '\nThe byte is put right. A broken download is not a verdict on the release, so the next pull tries again.',
  );
  writeFileSync(path, whole);
  const generation = await pullActivates({ stage, host }, 'access 3, third');
  await host.expectAnswers({ allowed: true, generation });
  return generation;
}

async function failTheCheck({ stage, host }: Story, active: number): Promise<void> {
  stage.screen.step(
    'One that fails its check',
    'A well signed policy with a mistake: roles are a list, and here is a word. The check says which line.',
  );
  edit(stage, 'bob: [editor, reader]', 'bob: editor');
  await publishCopy(stage, { revision: 'misspelt', serial: 4 });
  await stage.writ(['pull', ...host.configFlags], {
    exitCode: 3,
    says: [
      'REJECTED  access 4 [CHECK_FAILED]',
      'policy.yaml is an access policy',
      'policy.yaml:9:',
      'stays active',
    ],
  });
  await host.expectAnswers({ allowed: true, generation: active });
  stage.screen.say('\nThe verdict is remembered: another pull fetches nothing.');
  await stage.writ(['pull', ...host.configFlags], {
    exitCode: 3,
    says: ['REJECTED  access 4 [REMEMBERED_REFUSAL]', 'nothing was fetched'],
  });
}

async function letWorkersRefuse({ stage, host }: Story, active: number): Promise<void> {
  stage.screen.step(
    'One that only the workers can judge',
    'Bob gets a role that does not exist: no schema can see that. The workers refuse, and the old policy is put back.',
  );
  edit(stage, 'bob: editor', 'bob: [admn]');
  await publishCopy(stage, { revision: 'unknown-role', serial: 5 });
  await stage.writ(['pull', ...host.configFlags], {
    exitCode: 5,
    says: [
      `ROLLED BACK  generation ${active} is active again`,
      '[WORKER_REFUSED]',
      'user bob has the unknown role admn',
    ],
  });
  await host.expectAnswers({ allowed: true, generation: active });
}

async function goBack({ stage, host }: Story): Promise<void> {
  stage.screen.step(
    'Back by hand',
    'The generation before is still there: back to the second policy, in which Bob is a reader.',
  );
  const answer = await stage.writ(['rollback', ...host.configFlags, '--reason', 'Bob must not write'], {
    exitCode: 0,
    says: ['ACTIVATED generation', '(access 2', 'access 3 held'],
  });
  await host.expectAnswers({ allowed: false, generation: generationIn(answer) });
  await stage.writ(['status', ...host.configFlags], {
    exitCode: 0,
    says: ['ACTIVE', 'worker-1', 'worker-2', 'held      access 3', 'Bob must not write'],
  });
  await stage.writ(['history', ...host.configFlags], {
    exitCode: 0,
    says: ['activated', 'failed', 'rejected', 'rolled-back'],
  });
}

async function mend({ stage, host }: Story): Promise<void> {
  stage.screen.step('A mended policy', 'A newer serial ends the hold: Bob is an editor again.');
  edit(stage, 'bob: [admn]', 'bob: [editor]');
  await publishCopy(stage, { revision: 'mended', serial: 6 });
  const generation = await pullActivates({ stage, host }, 'access 6, mended');
  await host.expectAnswers({ allowed: true, generation });
}

interface Release {
  readonly source: string;
  readonly bundle: string;
  readonly revision: string;
  readonly serial: number;
}

/** Publishes what the story has made of the sample policy. */
function publishCopy(stage: Stage, release: Pick<Release, 'revision' | 'serial'>): Promise<void> {
  return publish(stage, { source: 'access', bundle: 'access', ...release });
}

/** @throws Unexpected when the release does not get this serial */
export async function publish(stage: Stage, { source, bundle, revision, serial }: Release): Promise<void> {
  const moved = serial === 1 ? '1' : `${serial - 1} -> ${serial}`;
  await stage.writ(['publish', source, ...keyFlags, '--bundle', bundle, '--revision', revision], {
    exitCode: 0,
    says: [`PUBLISHED ${bundle} stable serial ${moved} (${revision})`],
  });
}

async function pullActivates({ stage, host }: Story, release: string): Promise<number> {
  const says = [`(${release})`];
  return generationIn(await stage.writ(['pull', ...host.configFlags], { exitCode: 0, says }));
}

function generationIn(answer: string): number {
  const number = /^ACTIVATED generation ([0-9]+)/m.exec(answer)?.[1];
  if (number === undefined) throw new Unexpected('the answer names no activated generation');
  return Number(number);
}

function edit(stage: Stage, from: string, to: string): void {
  stage.edit(join('access', 'policy.yaml'), from, to);
}

function archives(stage: Stage): string[] {
  const folder = join('repo', 'targets', 'access');
  return readdirSync(stage.path(folder)).map((name) => join(folder, name));
}

function flipped(whole: Buffer): Buffer {
  const changed = Buffer.from(whole);
  const middle = changed.length >> 1;
  changed[middle] = (changed[middle] ?? 0) ^ 1;
  return changed;
}
