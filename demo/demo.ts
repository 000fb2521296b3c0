// `npm run demo`: the main job from keys to rollback, on this machine, in a temporary directory and on loopback.
// Runs the real program as child processes, holds every answer and exit code to what it has to be, and ends its own
// children and removes its directory however it ends: 0 all as expected, 1 something was not, 130 and 143 by a signal.
// `npm run demo -- --stay` leaves all of it up at the end, to look at, until a signal comes.
import { once } from 'node:events';
import { tellAccessStory } from './access-story.js';
import { playBakeStory } from './bake-story.js';
import { tellDnsStory } from './dns-story.js';
import { tellFleetStory } from './fleet-story.js';
import { Stage } from './stage.js';

const exitCodeOfSignal = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

async function main(): Promise<number> {
  const stage = new Stage();
  let brokenOff: number | undefined;
  const signalled = new AbortController();
  for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // A second signal does not wait for the children.
      if (brokenOff !== undefined) process.exit(brokenOff);
      brokenOff = exitCodeOfSignal[name];
      signalled.abort();
      stage.children.refuseMore();
      void stage.children.endAll();
    });
  }
  process.once('exit', () => stage.clearAtOnce());
  stage.screen.say(`Everything happens in ${stage.directory}, on 127.0.0.1, and is removed at the end.`);
  stage.screen.say(`Commands run in that directory; \`writ\` is \`node dist/writ/main.js\` of this folder.`);
  try {
    await Promise.race([tellStories(stage), rejectOnAbort(signalled.signal)]);
    if (process.argv.includes('--stay')) await stay(stage, signalled.signal);
    return 0;
  } catch (error) {
    if (brokenOff !== undefined) return brokenOff;
    for (const line of stage.children.lastWords(5)) stage.screen.say(`  ${line}`);
    stage.screen.say(`\nNOT AS EXPECTED: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    await stage.clear();
  }
}

async function tellStories(stage: Stage): Promise<void> {
  const { repositoryUrl } = await tellAccessStory(stage);
  await tellDnsStory(stage, repositoryUrl);
  await playBakeStory(stage, repositoryUrl);
  await tellFleetStory(stage, repositoryUrl);
  stage.screen.summary();
}

/** A request to a worker that has just been ended may never settle: the end of the demo does not depend on its stories. */
async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  await once(signal, 'abort');
  throw new Error('broken off');
}

async function stay(stage: Stage, signal: AbortSignal): Promise<void> {
  stage.screen.say('All of it stays up for you to look at: Ctrl-C ends it.');
  if (!signal.aborted) await once(signal, 'abort');
}

process.exit(await main());
