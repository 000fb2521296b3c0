// Describes a late test process before its end: the processes of its group, and the handles of its event loop. Without this
// description, an endless wait leaves nothing but the name of the case before.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const reportName = 'late.json';
const pollMs = 100;
const maxCommandChars = 200;
const maxHandles = 40;

/** Flags of Node for a process that `describeLateProcess` can ask for its handles. */
export function reportFlags(directory) {
  const place = [`--report-directory=${directory}`, `--report-filename=${reportName}`];
  return ['--report-on-signal', '--report-exclude-network', ...place];
}

/**
 * @param pid of the process, which is the id of its group as well
 * @param {{ directory: string, waitMs: number }} report the directory that the flags of the process name, and how long to wait for it:
 * while a blocked main thread writes no report
 * @returns lines for a person
 */
export async function describeLateProcess(pid, report) {
  return [...describeGroup(pid), ...(await describeHandles(pid, report))];
}

function describeGroup(groupId) {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => tryRead(() => describeMember(pid, groupId)) ?? []);
}

function describeMember(pid, groupId) {
  const { parent, group } = statOf(`/proc/${pid}`);
  if (group !== groupId) return [];
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    .replaceAll('\0', ' ')
    .slice(0, maxCommandChars);
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  const states = threads.map((at) =>
    tryRead(() => `${statOf(at).state} ${readFileSync(`${at}/wchan`, 'utf8')}`),
  );
  return [`process ${pid}, started by ${parent}: ${command}`, `  threads: ${states.join(', ')}`];
}

/** proc_pid_stat(5); the name of the program may contain a parenthesis. */
function statOf(at) {
  const stat = readFileSync(`${at}/stat`, 'latin1');
  const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state, parent: Number(parent), group: Number(group) };
}

/** A process or a thread may end during the read. */
function tryRead(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

async function describeHandles(pid, { directory, waitMs }) {
  const path = join(directory, reportName);
  process.kill(pid, 'SIGUSR2');
  for (let waitedMs = 0; waitedMs < waitMs; waitedMs += pollMs) {
    await sleep(pollMs);
    const report = existsSync(path) && tryRead(() => JSON.parse(readFileSync(path, 'utf8')));
    if (!report) continue;
    const handles = report.libuv.filter((handle) => handle.is_active && handle.is_referenced);
    return handles.slice(0, maxHandles).map((handle) => `handle ${describeHandle(handle)}`);
  }
  return ['the main thread is blocked: no report of the handles'];
}

function describeHandle({ type, pid, firesInMsFromNow, localEndpoint, remoteEndpoint, fd }) {
  const endpoints = [localEndpoint, remoteEndpoint].map((one) => one && `${one.host}:${one.port}`);
  const facts = Object.entries({
    pid,
    fd,
    firesInMs: firesInMsFromNow,
    local: endpoints[0],
    remote: endpoints[1],
  });
  return [
    type,
    ...facts.filter(([, value]) => value !== undefined).map(([key, value]) => `${key} ${value}`),
  ].join(' ');
}
