// The results of `npm run verify`, one JSON line for each stage that ended, in a file that git ignores. Owns its form, and how several
// runs for one commit become one table: the newest result of each stage counts.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * @typedef {object} StageResult
 * @property {string} commit 40 hex digits, and `+changes` if the work tree differed from it
 * @property {string} stage its name, with its part if it has parts, as `mutations 3/6`
 * @property {number} seconds
 * @property {string} endedAt ISO 8601
 * @property {string} node its version
 * @property {string} [failure] which command failed, and how; left out if the stage passed
 */

/** @param {string} path @param {StageResult} result */
export function addResult(path, result) {
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, `${JSON.stringify(result)}\n`);
}

/** @returns {Map<string, StageResult>} by stage, for this commit; empty if there is no file */
export function readResults(path, commit) {
  if (!existsSync(path)) return new Map();
  const lines = readFileSync(path, 'utf8').split('\n');
  // The machine may have died while the last line was written.
  const results = lines.flatMap((line) => parsedLine(line)).filter((one) => one.commit === commit);
  return new Map(results.map((one) => [one.stage, one]));
}

function parsedLine(line) {
  try {
    return line === '' ? [] : [JSON.parse(line)];
  } catch {
    return [];
  }
}

/**
 * @param {readonly string[]} names of all stages, with their parts
 * @param {Map<string, StageResult>} results
 * @returns {string} a Markdown table, one row for each stage
 */
export function drawResults(names, results) {
  const rows = names.map((name) => rowOf(name, results.get(name)));
  return ['| stage | result | minutes | ended | Node |', '|---|---|---|---|---|', ...rows].join('\n');
}

function rowOf(name, result) {
  if (result === undefined) return `| ${name} | not run | | | |`;
  const { seconds, endedAt, node, failure } = result;
  const minutes = (seconds / 60).toFixed(1);
  return `| ${name} | ${failure === undefined ? 'passed' : `FAILED: ${failure}`} | ${minutes} | ${endedAt} | ${node} |`;
}
