// The stages of the gate, one after the other, for .ci/run: `node scripts/verify/gate.js --tools DIR`. Ends with 1 at the first stage
// that fails, or when all of them together take too long. A stage that exceeds its share of the time is named, and does not fail:
// a machine that other work slows down says nothing about the change.
import { parseArgs } from 'node:util';
import { measureSlowness } from './machine-speed.js';
import { killStages, runStage } from './run-stage.js';
import { gateLimitMinutes, gateStages } from './stages.js';

const { values } = parseArgs({ options: { tools: { type: 'string' } } });
if (values.tools === undefined)
  throw new Error('--tools DIR: the directory that .ci/install-tools has filled');
process.on('exit', killStages);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
process.exitCode = (await runGate(values.tools)) ? 0 : 1;

async function runGate(tools) {
  const slowness = await measureSlowness();
  const startedMs = performance.now();
  const endsAtMs = startedMs + gateLimitMinutes * slowness * 60_000;
  say(`This machine needs ${Math.round(slowness * 100)} % of the time of an idle one with two cores.`);
  const done = [];
  for (const stage of gateStages) {
    say(`\n== ${stage.name}`);
    const result = await runStage(stage, { tools, endsAtMs });
    done.push({ stage, ...result });
    say(`== ${stage.name}: ${lengthOf(result.seconds)} minutes of ${stage.shareMinutes}`);
    if (result.failure !== undefined) break;
  }
  say('');
  for (const one of done) say(lineOf(one, slowness));
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  say(`all: ${lengthOf(seconds)} minutes, limit ${lengthOf(Math.round(gateLimitMinutes * slowness * 60))}`);
  return done.every(({ failure }) => failure === undefined);
}

function lineOf({ stage, seconds, failure }, slowness) {
  const shareSeconds = stage.shareMinutes * 60 * slowness;
  const long = seconds > shareSeconds ? `, more than its share of ${lengthOf(Math.round(shareSeconds))}` : '';
  return `${stage.name.padEnd(10)} ${lengthOf(seconds)}${long}${failure === undefined ? '' : `  FAILED: ${failure}`}`;
}

function lengthOf(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
