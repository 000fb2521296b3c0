// The line of `writ status` about the sandbox: whether commands are confined, and which bounds are in force. Pure.
import type { SandboxStatus } from '../../core/status/status.js';

/** @returns no line when no agent has tested the sandbox */
export function sandboxLines(sandbox: SandboxStatus | undefined): string[] {
  return sandbox === undefined || sandbox.state === 'unknown' ? [] : [`  sandbox   ${sandboxText(sandbox)}`];
}

function sandboxText(sandbox: SandboxStatus): string {
  const { mode, state, reason, withoutIt } = sandbox;
  if (state === 'on') return `on; commands run as ${commandUserText(sandbox)}; ${boundsText(sandbox)}`;
  if (state === 'off') return 'off: commands run as the agent';
  // A report of 0.1.0 has no `withoutIt`.
  const isRefused = withoutIt === undefined ? mode === 'required' : withoutIt === 'refused';
  const effect = isRefused ? 'no command is run' : 'commands run as the agent';
  return `${state}${reason === undefined ? '' : ` (${reason})`}: ${effect}`;
}

function commandUserText({ user, userNamespace }: SandboxStatus): string {
  const userText = user === 'nobody' ? 'nobody' : "the agent's user";
  return userNamespace === 'yes' ? userText : `${userText}, without a user namespace`;
}

function boundsText({ memory, processes, systemCalls }: SandboxStatus): string {
  const of = { 'each-process': 'process', 'each-command': 'command', 'each-user': 'user' } as const;
  const open = systemCalls === 'open' ? '; system calls are not filtered' : '';
  return `memory bounded per ${of[memory ?? 'each-process']}, processes per ${of[processes ?? 'each-user']}${open}`;
}
