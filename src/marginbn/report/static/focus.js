// One stop of the Tab key for many things: the arrow keys go from one to the next.

const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

// Let the focus roam among the members of a group; the group remembers who had it last.
//
// list() gives the members in the order in which they are met now. Left and right go by columns
// where columnOf says in which one a member stands: to the first member of the next one. Returns a
// function to call when the list has changed: one of its members is always a stop.
export function letRoam(group, list, columnOf = null) {
  const settle = () => keepPlace(list(), list().find((member) => member.tabIndex === 0) ?? list()[0]);
  keepPlace(list(), list()[0]);
  group.addEventListener("keydown", (event) => moveFocus(event, list(), columnOf));
  group.addEventListener("focusin", (event) => {
    if (list().includes(event.target)) keepPlace(list(), event.target);
  });
  return settle;
}

function keepPlace(members, focused) {
  for (const member of members) member.tabIndex = member === focused ? 0 : -1;
}

function moveFocus(event, members, columnOf) {
  const here = members.indexOf(event.target);
  if (here < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const ends = { Home: 0, End: members.length - 1 };
  let next = ends[event.key] ?? here + (STEPS[event.key] ?? NaN);
  if (columnOf && /Left|Right/.test(event.key)) {
    const column = columnOf(event.target) + STEPS[event.key];
    next = members.findIndex((member) => columnOf(member) === column);
  }
  if (!(next in members)) return;
  event.preventDefault();
  members[next].focus();
}
