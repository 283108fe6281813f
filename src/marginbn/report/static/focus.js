// One stop of the Tab key for many things: the arrow keys go from one to the next.

const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

// Let the focus roam among the members of a group; the group remembers who had it last.
export function letRoam(group, members) {
  keepPlace(members, members[0]);
  group.addEventListener("keydown", (event) => moveFocus(event, members));
  group.addEventListener("focusin", (event) => keepPlace(members, event.target));
}

function keepPlace(members, focused) {
  for (const member of members) member.tabIndex = member === focused ? 0 : -1;
}

function moveFocus(event, members) {
  const ends = { Home: 0, End: members.length - 1 };
  const next = ends[event.key] ?? members.indexOf(event.target) + (STEPS[event.key] ?? NaN);
  if (!(next in members)) return;
  event.preventDefault();
  members[next].focus();
}
