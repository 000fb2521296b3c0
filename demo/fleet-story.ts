// Part three of the demo: three hosts that report to a fleet server, and a release that one of them refuses. A pipeline that
// waits for it hears so, with the host's name; a person reads why on the page.
import { writeFileSync } from 'node:fs';
import { publish } from './access-story.js';
import { configOf, hostNames, startFleetHosts, strictHost, untilAllReport } from './fleet-hosts.js';
import { expectEqual, expectParts, Unexpected } from './screen.js';
import type { Stage } from './stage.js';

const store = ['--store', 'fleet'] as const;
const [hostToken, peopleToken] = ['host.token', 'people.token'] as const;
const reason = 'policy.yaml:5:';

/** @throws Unexpected for any answer or exit code that is not as it has to be */
export async function tellFleetStory(stage: Stage, repositoryUrl: string): Promise<void> {
  const { url, token } = await startFleet(stage, repositoryUrl);
  const door = ['--url', url, '--token-file', peopleToken] as const;
  await stage.writ(['fleet', 'wait', 'access', '6', '--within', '60s', ...door], {
    exitCode: 0,
    says: ['REACHED', 'access 6: 3 of 3 done'],
  });
  await publishWider(stage);
  await stage.writ(['fleet', 'wait', 'access', '7', '--within', '60s', ...door], {
    exitCode: 3,
    says: ['OUT OF REACH access 7:', `${strictHost} refused it [CHECK_FAILED]`],
  });
  await stage.writ(['fleet', 'status', ...door], {
    exitCode: 2,
    says: ['CRITICAL 1 host (edge-3) refused access 7 (CHECK_FAILED)', reason],
  });
  await showPage(stage, url, token);
}

async function startFleet(
  stage: Stage,
  repositoryUrl: string,
): Promise<{ readonly url: string; readonly token: string }> {
  stage.screen.step(
    'A fleet of three hosts',
    'A separate server collects what hosts report. It has no key that could sign policy.',
  );
  await makeToken(stage, ['hosts', '--uses', String(hostNames.length)], hostToken);
  const token = await makeToken(stage, ['people', '--role', 'detail'], peopleToken);
  const server = stage.startWrit(['fleet', 'serve', ...store, '--listen', '127.0.0.1:0']);
  const [line, url = ''] = await server.waitFor('stdout', /.*LISTENING (http:\S+)\n/);
  stage.screen.output(line);
  await startFleetHosts(stage, { repositoryUrl, fleetUrl: url, tokenFile: hostToken });
  await untilAllReport(url, token, 6);
  stage.screen.say('\nIs release 6 in use everywhere, and did each worker confirm it?');
  return { url, token };
}

/** @returns the token, which is now in the file too */
async function makeToken(stage: Stage, kind: readonly string[], file: string): Promise<string> {
  const answer = await stage.writ(['fleet', 'token', 'create', '--for', ...kind, ...store], {
    exitCode: 0,
    says: ['CREATED'],
  });
  const token = /^writ_\S+$/m.exec(answer)?.[0];
  if (token === undefined) throw new Unexpected('the answer contains no token');
  stage.screen.say(`(that token goes into ${file})`);
  writeFileSync(stage.path(file), token, { mode: 0o600 });
  return token;
}

async function publishWider(stage: Stage): Promise<void> {
  stage.screen.step(
    'A release that one of them refuses',
    `Editors may create users too. The check of ${strictHost} forbids that, and the pipeline hears of it.`,
  );
  const before = 'editor: [report.read, report.write]';
  stage.edit('access/policy.yaml', before, before.replace(']', ', user.create]'));
  await publish(stage, { source: 'access', bundle: 'access', revision: 'wider', serial: 7 });
  for (const name of hostNames) {
    const isStrict = name === strictHost;
    await stage.writ(['pull', '--config', configOf(name)], {
      exitCode: isStrict ? 3 : 0,
      says: isStrict ? ['REJECTED  access 7 [CHECK_FAILED]', reason] : ['(access 7, wider)'],
    });
  }
}

async function showPage(stage: Stage, url: string, token: string): Promise<void> {
  const page = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  expectEqual('the status of the page', page.status, 200);
  expectParts('the page', await page.text(), ['CRITICAL', 'refused access 7 (CHECK_FAILED)', reason]);
  stage.screen.say(`\nThe same on a page, with the reason and live: ${url}/ takes the token ${token}`);
  stage.screen.say('It goes with the demo; `npm run demo -- --stay` leaves it up.');
}
